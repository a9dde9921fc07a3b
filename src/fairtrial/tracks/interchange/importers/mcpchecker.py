"""Import evals and tasks of mcpchecker (formerly gevals): prompts, setup and verify steps, assertions about tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.trust import within
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import Imported, expecting, read_yaml
from fairtrial.tracks.interchange.importers._tasks import AGENT, Findings, as_shell, as_written, combined, with_judge

_SERVER_KEYS = ("type", "url", "headers", "command", "args", "env", "cwd")
_TASK_KEYS = {"kind", "apiVersion", "metadata", "spec", "steps"}
_ASSERTIONS = {"toolsUsed", "requireAny", "toolsNotUsed", "minToolCalls", "maxToolCalls", "callOrder"}
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "ms": 0.001}


class Mcpchecker:
    """Imports evals and tasks of mcpchecker."""

    def read(self, file: Path) -> Imported:
        """Convert an eval (`kind: Eval`) with its tasks, one task, or a folder of tasks into a suite."""
        reader = _Tasks(file if file.is_dir() else file.parent)
        if file.is_dir():
            tasks = sorted(path for path in file.rglob("*.y*ml") if _kind(path) == "Task")
            if not tasks:
                raise FairtrialError(f"{file} has no tasks of mcpchecker (`kind: Task`)")
            return reader.suite(file.resolve().name, [(path, {}) for path in tasks])
        with expecting(file, "a configuration of mcpchecker"):
            document = read_yaml(file)
            kind = document.get("kind") if isinstance(document, dict) else None
            if kind == "Task":
                return reader.suite(file.resolve().parent.name, [(file, {})])
            if kind != "Eval":
                raise FairtrialError(f"{file} is neither an eval nor a task of mcpchecker: it has no `kind` of these")
            return reader.eval(document)


def _kind(path: Path) -> Any:
    try:
        document = read_yaml(path)
    except FairtrialError:
        return None
    return document.get("kind") if isinstance(document, dict) else None


class _Tasks:
    def __init__(self, folder: Path) -> None:
        self._folder, self._findings = folder, Findings()
        self._servers: dict[str, Any] = {}
        self._target: dict[str, Any] = AGENT

    def eval(self, document: dict[str, Any]) -> Imported:
        config = document["config"]
        known = {"agent", "agentFile", "mcpConfigFile", "taskSets", "llmJudge", "extensions"}
        self._findings.unknown(config, known, "`{}` of the eval")
        self._agent(config)
        if config.get("mcpConfigFile"):
            servers = read_yaml(within(self._folder, config["mcpConfigFile"]))["mcpServers"]
            self._servers = {name: self._server(name, entry) for name, entry in servers.items()}
        tasks = []
        for entry in config["taskSets"]:
            names = [entry["path"]] if "path" in entry else sorted(map(str, self._folder.glob(entry["glob"])))
            tasks += [(within(self._folder, name), entry.get("assertions") or {}) for name in names]
            if entry.get("labelSelector"):
                self._findings.add("`labelSelector` of a task set: all its tasks are imported")
        return self.suite(str(document["metadata"]["name"]), tasks)

    def _agent(self, config: dict[str, Any]) -> None:
        agent = config.get("agent") or {}
        kind, model = str(agent.get("type") or ""), agent.get("model")
        if kind in ("builtin.llm-agent", "builtin.openai-agent") and model:
            self._target = {"target": f"tool-agent:{str(model) if ':' in str(model) else f'openai:{model}'}"}
        elif kind == "builtin.claude-code":
            self._target = {**AGENT, "target": f"claude-code:{model}" if model else "claude-code"}
        elif kind or "agentFile" in config:
            self._findings.add("the agent: choose a target; `command` starts any program")

    def _server(self, name: str, entry: dict[str, Any]) -> dict[str, Any]:
        self._findings.unknown(entry, (*_SERVER_KEYS, "enableAllTools", "alwaysAllow"), "`{}` of MCP servers", name)
        return {key: entry[key] for key in _SERVER_KEYS if entry.get(key)}

    def suite(self, name: str, tasks: list[tuple[Path, dict[str, Any]]]) -> Imported:
        """Return the suite of these tasks, each with the assertions about it."""
        cases = []
        for path, assertions in tasks:
            with expecting(path, "a task of mcpchecker"):
                case = self._case(path, read_yaml(path), assertions)
                cases += [as_written(case)] if case else []
        if not cases:
            raise FairtrialError(f"there is no task to import: {'; '.join(self._findings.listed()) or 'none is named'}")
        if not self._servers:
            self._findings.add("the MCP servers, which an eval names: add them under `mcp_servers` and to `mcp`")
        suite: dict[str, Any] = {"name": escape(name), "targets": [self._target]}
        if self._servers:
            suite["mcp_servers"] = self._servers
        suite["conditions"] = {"with-servers": {"mcp": sorted(self._servers)} if self._servers else {}}
        suite["cases"] = cases
        differences = ["scripts run in a fresh folder for every trial, not in the folder of the task"]
        return Imported(with_judge(suite), self._findings.listed(), differences)

    def _case(self, path: Path, document: dict[str, Any], assertions: dict[str, Any]) -> dict[str, Any] | None:
        """Return a task as a case; None if its prompt is not in its folder."""
        metadata = document["metadata"]
        name = str(metadata["name"])
        self._findings.unknown(document, _TASK_KEYS, "key `{}` of tasks", name)
        spec = document.get("spec") or _modern(document["steps"])
        text = self._text(spec["prompt"], path, name)
        if text is None:
            self._findings.add("tasks whose prompt cannot be read", name)
            return None
        case: dict[str, Any] = {"id": name, "input": str(text).strip()}
        if metadata.get("difficulty"):
            case["difficulty"] = str(metadata["difficulty"])
        if metadata.get("labels"):
            case["tags"] = [f"{key}={value}" for key, value in metadata["labels"].items()]
        if int(metadata.get("runs") or 1) > 1:
            case["repeats"] = int(metadata["runs"])
        setup = [script for step in spec.get("setup") or () if (script := self._script(step, path, name))]
        if setup:
            case["workspace"] = {"setup": setup}
        if spec.get("cleanup"):
            self._findings.add("`cleanup` steps: workspaces vanish by themselves; clean up elsewhere by hand", name)
        scorers = [scorer for step in spec.get("verify") or () if (scorer := self._verify(step, path, name))]
        tools = self._assertions(assertions, name)
        named = [_name(one) for one in assertions.get("toolsUsed") or () if "tool" in one]  # not only by a pattern
        case |= {"tools": named} if named else {}
        case["scorer"] = combined([*scorers, *tools]) or {"type": "llm_judge"}
        if not (scorers or tools):
            self._findings.add("tasks without a check that can be carried over are judged by a model", name)
        return case

    def _script(self, step: dict[str, Any], path: Path, task: str) -> str | None:
        """Return a step as a shell script; None if it is of another kind."""
        ((kind, value),) = step.items()
        if kind != "script":
            self._findings.add(f"steps of kind `{kind}`: write them as scripts", task)
            return None
        text = self._text(value, path, task)
        return None if text is None else as_shell(text)

    def _text(self, given: dict[str, Any], path: Path, task: str) -> str | None:
        return given["inline"] if "inline" in given else self._findings.text_inside(path.parent, given["file"], task)

    def _verify(self, step: dict[str, Any], path: Path, task: str) -> dict[str, Any] | None:
        ((kind, value),) = step.items()
        if kind == "llmJudge":
            wanted, how = (value["exact"], "say the same as") if "exact" in value else (value["contains"], "contain")
            words = f"Mark 10 if the answer's meaning does {how} this, else 0: {wanted}"
            return {"type": "llm_judge", "instructions": words, "threshold": 0.5}
        script = self._script(step, path, task)
        if script is None:
            return None
        check: dict[str, Any] = {"type": "check", "command": script}
        return {**check, "timeout": _seconds(value["timeout"])} if value.get("timeout") else check

    def _assertions(self, given: dict[str, Any], task: str) -> list[dict[str, Any]]:
        self._findings.unknown(given, _ASSERTIONS, "assertion `{}`", task)
        scorer: dict[str, Any] = {"type": "tool_calls"}
        if names := [_name(one) for one in given.get("toolsUsed") or ()]:
            scorer["names"] = names
        if forbidden := [_name(one) for one in given.get("toolsNotUsed") or ()]:
            scorer["forbidden"] = forbidden
        limits = {name: given[f"{name}ToolCalls"] for name in ("min", "max") if f"{name}ToolCalls" in given}
        scorers = [scorer] if len(scorer) > 1 else []
        scorers += [{"type": "tool_calls", **limits}] if limits else []
        if order := [_name(one) for one in given.get("callOrder") or () if one.get("type", "tool") == "tool"]:
            scorers.append({"type": "tool_calls", "names": order, "order": "in_order"})
        if choices := [_name(one) for one in given.get("requireAny") or ()]:
            parts = [{"type": "tool_calls", "names": [name]} for name in choices]
            scorers.append({"type": "any_of", "scorers": parts})
        return scorers


def _modern(steps: dict[str, Any]) -> dict[str, Any]:
    """Return a task in the form of v1alpha1 in that of v1alpha2."""
    spec: dict[str, Any] = {"prompt": steps["prompt"]}
    for key in ("setup", "verify", "cleanup"):
        if value := steps.get(key):
            judged = {"contains", "exact"} & set(value)
            spec[key] = [{"llmJudge" if judged else "script": value}]
    return spec


def _name(entry: dict[str, Any]) -> str:
    """Return the name of a tool for `tool_calls`: `server.tool`, with `*` for what a pattern leaves open."""
    tool = str(entry.get("tool") or entry.get("name") or "*")
    if "toolPattern" in entry:
        tool = re.sub(r"\.[*+]|\[[^\]]*\][*+]?|\([^)]*\)|\\.|[.?]", "*", str(entry["toolPattern"]).strip("^$"))
    return f"{entry['server']}.{tool}" if entry.get("server") else tool


def _seconds(text: Any) -> float:
    """Return a duration such as 90s, 1m30s or 2m in seconds."""
    parts = re.findall(r"([\d.]+)(ms|[smh])", str(text))
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else float(text)
