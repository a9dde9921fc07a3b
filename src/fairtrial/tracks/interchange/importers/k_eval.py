"""Import from `k-eval`: one agent under several conditions, scored against golden answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.settings import AGENT_TIMEOUT
from fairtrial.foreign.suites import FileRef, Imported, expecting, read_yaml

_KEYS = {"name", "version", "dataset", "agent", "judge", "mcp_servers", "conditions", "execution"}
_CONDITION_KEYS = {"mcp_servers", "system_prompt", "require_mcp_tool_use", "require_mcp_tool_success"}
_EXECUTION_KEYS = {"num_repetitions", "max_concurrent", "retry"}
_AGENTS = {"claude_code_sdk", "claude_agent_sdk", "claude_code", "claude"}
_REPEATS, _AT_ONCE = 3, 5  # k-eval's defaults
# k-eval has people set them so that repeats are independent; an agent here gets only what the suite names.
_CACHING = tuple(f"DISABLE_PROMPT_CACHING{of}" for of in ("", "_HAIKU", "_SONNET", "_OPUS"))
_KEYS_THERE = {
    "targets.0.target": "agent.model",
    "targets.0": "agent",
    "judge.target": "judge.model",
    "dataset.input": "dataset.question_key",
    "dataset.expected": "dataset.answer_key",
    "repeats": "execution.num_repetitions",
    "concurrency": "execution.max_concurrent",
    "retry.attempts": "execution.retry.max_attempts",
    "retry.wait": "execution.retry.initial_backoff_seconds",
    "retry": "execution.retry",
    "conditions.*.system": "conditions.*.system_prompt",
    "conditions.*.mcp": "conditions.*.mcp_servers",
}
_PLACES = {"agent": "^[\"']?", "judge": "^[\"']?", "question_key": r"\b", "answer_key": r"\b"}
_MARKERS = [re.compile(rf"{before}{key}[\"']?\s*:", re.MULTILINE) for key, before in _PLACES.items()]

# Settings that mean something else here, and why.
_DIFFERENCES = {
    "require_mcp_tool_use": (
        "answers without the required tool use are kept and marked, not repeated until the tool is used: repeating "
        "would select answers"
    ),
    "judge": "when a judge fails, the agent is not asked to answer again",
    "variables": (
        "of your environment, the agent gets what leads to its model and what `env` names, not everything: secrets "
        "next to it stay yours"
    ),
    "limits": (
        f"an answer may take {AGENT_TIMEOUT:g} s (`timeout`) and 30 turns (`max_turns`); k-eval has no such limits"
    ),
}


class KEval:
    """Imports k-eval configurations."""

    def recognises(self, text: str) -> bool:
        """Return whether a configuration is k-eval's, recognised by its keys."""
        return all(marker.search(text) for marker in _MARKERS)

    def read(self, file: Path) -> Imported:
        """Convert a k-eval configuration into a suite."""
        with expecting(file, "a k-eval configuration"):
            return self._read(file)

    def _read(self, file: Path) -> Imported:
        config = read_yaml(file)
        missing = [key for key in ("name", "dataset", "agent", "judge", "conditions") if key not in (config or {})]
        if missing:
            raise FairtrialError(f"{file} is not a k-eval configuration: it has no `{missing[0]}`")
        for key in ("dataset", "agent", "judge"):
            if not isinstance(config[key], dict):
                raise FairtrialError(f"{file}: `{key}` must be a mapping")
        if not isinstance(config["conditions"], dict) or not config["conditions"]:
            raise FairtrialError(f"{file}: `conditions` must be a mapping with at least one condition")
        return _Configuration(config, file.parent).read()


class _Configuration:
    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config, self.folder = config, folder
        self.findings = [f"key `{key}`" for key in sorted(set(config) - _KEYS)]
        self.differences: list[str] = [_DIFFERENCES[name] for name in ("judge", "limits", "variables")]

    def read(self) -> Imported:
        config = self.config
        execution = config.get("execution") or {}
        self._report_unknown("execution", execution, _EXECUTION_KEYS)
        dataset = config["dataset"]
        suite: dict[str, Any] = {"name": config["name"]}
        if config.get("version"):
            suite["description"] = f"version {config['version']}"
        suite |= {
            "targets": [{"id": "agent", "target": self.agent(config["agent"]), "options": {"env": list(_CACHING)}}],
            "judge": self.judge(config["judge"]),
            "scorer": {"type": "golden_judge", "rubric": "k-eval"},
            "repeats": execution.get("num_repetitions", _REPEATS),
            "concurrency": execution.get("max_concurrent", _AT_ONCE),
        }
        if retry := self.retry(execution.get("retry") or {}):
            suite["retry"] = retry
        if config.get("mcp_servers"):
            suite["mcp_servers"] = config["mcp_servers"]
        suite["conditions"] = {name: self.condition(name, entry) for name, entry in config["conditions"].items()}
        suite["dataset"] = {
            "path": self.path(str(dataset["path"])),
            "input": dataset["question_key"],
            "expected": dataset["answer_key"],
        }
        return Imported(suite, self.findings, list(dict.fromkeys(self.differences)), keys=_KEYS_THERE)

    def path(self, path: str) -> str | FileRef:
        """Return a path of the configuration, relative to wherever the suite is written."""
        fixed = "${" in path or Path(path).is_absolute()
        return path if fixed else FileRef(self.folder / path)

    def agent(self, agent: dict[str, Any]) -> str:
        self._report_unknown("agent", agent, {"type", "model"})
        if agent["type"] not in _AGENTS:
            raise FairtrialError(f"unknown agent type `{agent['type']}`; known: {', '.join(sorted(_AGENTS))}")
        return f"claude-code:{agent['model']}" if agent.get("model") else "claude-code"

    def judge(self, judge: dict[str, Any]) -> dict[str, Any]:
        self._report_unknown("judge", judge, {"model", "temperature"})
        entry: dict[str, Any] = {"target": _target(str(judge["model"]))}
        if judge.get("temperature") is not None:
            entry["temperature"] = judge["temperature"]
        return entry

    def condition(self, name: str, entry: dict[str, Any]) -> dict[str, Any]:
        self._report_unknown(f"condition {name}", entry, _CONDITION_KEYS)
        condition: dict[str, Any] = {"system": entry.get("system_prompt") or ""}
        if entry.get("mcp_servers"):
            condition["mcp"] = entry["mcp_servers"]
        for what in ("use", "success"):
            if entry.get(f"require_mcp_tool_{what}"):
                condition[f"require_tool_{what}"] = True
                self.differences.append(_DIFFERENCES["require_mcp_tool_use"])
        return condition

    def retry(self, retry: dict[str, Any]) -> dict[str, Any]:
        names = {"max_attempts": "attempts", "initial_backoff_seconds": "wait"}
        self._report_unknown("retry", retry, {*names, "backoff_multiplier"})
        if retry.get("backoff_multiplier") not in (None, 2, 2.0):
            self.findings.append("`backoff_multiplier`: waits are always doubled, with random jitter")
        return {ours: retry[theirs] for theirs, ours in names.items() if theirs in retry}

    def _report_unknown(self, what: str, entry: dict[str, Any], known: set[str]) -> None:
        self.findings += [f"`{key}` of {what}" for key in sorted(set(entry) - known)]


def _target(model: str) -> str:
    provider, slash, rest = model.partition("/")
    if slash:
        return f"{provider}:{rest}"
    if model.startswith("claude"):
        return f"anthropic:{model}"
    if model.startswith(("gpt", "o1", "o3", "o4", "chatgpt")):
        return f"openai:{model}"
    raise FairtrialError(f"unknown provider of the judge `{model}`: write PROVIDER/{model}")
