"""Import datasets of mcp-eval: cases in YAML or JSON with evaluators, and the servers in `mcpeval.yaml`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import Imported, expecting, read_yaml
from fairtrial.tracks.interchange.importers._tasks import Findings, as_written, combined, with_judge

_SETTINGS = ("mcpeval.yaml", "mcpeval.config.yaml", "mcp_agent.config.yaml")
_KEYS = ("name", "server_name", "metadata", "agent_spec", "cases", "evaluators")
_SERVER_KEYS = ("command", "args", "env", "url", "headers", "cwd")
_MODEL = "tool-agent:anthropic:claude-sonnet-5-5"


class McpEval:
    """Imports datasets of mcp-eval."""

    def read(self, file: Path) -> Imported:
        """Convert a dataset into a suite."""
        with expecting(file, "a dataset of mcp-eval"):
            data = read_yaml(file)  # JSON is YAML
            if not isinstance(data, dict) or not isinstance(data.get("cases"), list):
                raise FairtrialError(
                    f"{file} is not an mcp-eval dataset: it has no `cases`. Tests in Python are not imported; "
                    "`Dataset.to_file` writes a dataset"
                )
            return _Dataset(file, data).read()


class _Dataset:
    def __init__(self, file: Path, data: dict[str, Any]) -> None:
        self._file, self._data, self._findings = file, data, Findings()

    def read(self) -> Imported:
        data, servers = self._data, self._servers()
        self._findings.unknown(data, _KEYS, "key `{}`")
        if data.get("agent_spec"):
            self._findings.add(f"the agent `{data['agent_spec']}`: choose a target and a `system` prompt")
        suite: dict[str, Any] = {"name": escape(str(data.get("name") or self._file.stem)), "targets": [_MODEL]}
        condition: dict[str, Any] = {}
        if servers:
            suite["mcp_servers"], condition["mcp"] = servers, sorted(servers)
        suite["conditions"] = {"with-server": condition}
        suite["cases"] = [as_written(self._case(entry)) for entry in data["cases"]]
        differences = ["the model is a guess: mcp-eval has it in its own settings"]
        return Imported(with_judge(suite), self._findings.listed(), differences)

    def _servers(self) -> dict[str, Any]:
        """Return the servers of the settings next to the dataset, or above it."""
        wanted = self._data.get("server_name")
        for folder in self._file.absolute().parents[:3]:
            for name in _SETTINGS:
                if (folder / name).is_file():
                    settings = read_yaml(folder / name) or {}
                    known = (settings.get("mcp") or {}).get("servers") or settings.get("mcp_servers") or {}
                    chosen = {key: known[key] for key in known if wanted in (None, key)}
                    return {key: _server(entry) for key, entry in chosen.items()}
        self._findings.add(f"the server{f' `{wanted}`' if wanted else ''}: add it under `mcp_servers` and to `mcp`")
        return {}

    def _case(self, entry: dict[str, Any]) -> dict[str, Any]:
        name, inputs = str(entry["name"]), entry["inputs"]
        case: dict[str, Any] = {"id": name, "input": inputs if isinstance(inputs, str) else json.dumps(inputs)}
        metadata = entry.get("metadata") or {}
        case |= {key: str(metadata[key]) for key in ("difficulty", "category") if metadata.get(key)}
        evaluators = [*(entry.get("evaluators") or ()), *(self._data.get("evaluators") or ())]
        if entry.get("expected_output") is not None:
            case["expected"] = entry["expected_output"]
            evaluators += [{"EqualsExpected": {}}] if not any("EqualsExpected" in one for one in evaluators) else []
        scorers = [
            scorer for one in evaluators for key, value in one.items() if (scorer := self._scorer(key, value, name))
        ]
        case["scorer"] = combined(scorers) or {"type": "llm_judge"}
        if not scorers:
            self._findings.add("cases without a check that can be carried over are judged by a model", name)
        return case

    def _scorer(self, kind: str, given: Any, case: str) -> dict[str, Any] | None:
        options = given if isinstance(given, dict) else {}
        make = _SCORERS.get(kind)
        scorer = make(options) if make else None
        if scorer is None:
            self._findings.add(f"evaluator `{kind}`", case)
        return scorer


def _server(entry: dict[str, Any]) -> dict[str, Any]:
    server = {key: entry[key] for key in _SERVER_KEYS if entry.get(key)}
    return {**server, "type": "sse"} if entry.get("transport") == "sse" else server


def _contains(options: dict[str, Any]) -> dict[str, Any]:
    text = str(options["text"])
    if options.get("regex"):
        return {"type": "regex", "pattern": text if options.get("case_sensitive") else f"/{text}/i"}
    return {"type": "contains", "all": [text], **_letters(options)}


def _letters(options: dict[str, Any]) -> dict[str, Any]:
    return {"verbatim": True} if options.get("case_sensitive") else {"words": False}


def _called_with(options: dict[str, Any]) -> dict[str, Any] | None:
    arguments = options.get("expected_args") or options.get("arguments")
    return {"type": "tool_calls", "arguments": {options["tool_name"]: arguments}} if arguments else None


def _sequence(options: dict[str, Any]) -> dict[str, Any]:
    order = "in_order" if options.get("allow_other_calls") else "exact"
    return {"type": "tool_calls", "names": list(options["expected_sequence"]), "order": order}


def _count(options: dict[str, Any]) -> dict[str, Any]:
    name, count = options["tool_name"], int(options["expected_count"])
    if not count:
        return {"type": "tool_calls", "forbidden": [name]}
    return {"type": "tool_calls", "names": [name], "min": count, "max": count}


def _judge(options: dict[str, Any]) -> dict[str, Any]:
    scorer = {"type": "llm_judge", "instructions": str(options["rubric"])}
    return {**scorer, "threshold": float(options["min_score"])} if options.get("min_score") else scorer


_SCORERS: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
    "ToolWasCalled": lambda o: {"type": "tool_calls", "names": [o["tool_name"]], "min": int(o.get("min_times") or 1)},
    "ToolCalledWith": _called_with,
    "ToolSequence": _sequence,
    "ExactToolCount": _count,
    "ResponseContains": _contains,
    "NotContains": lambda o: {"type": "contains", "none": [str(o["text"])], **_letters(o)},
    "EqualsExpected": lambda o: {"type": "match"},
    "LLMJudge": _judge,
    "ResponseTimeCheck": lambda o: {"type": "latency", "max": float(o["max_ms"])},
}
