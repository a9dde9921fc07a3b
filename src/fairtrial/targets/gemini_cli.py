"""`gemini-cli`: Google's agent, with only the condition's tools."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from fairtrial.agents.processes.process import Ended, exit_words
from fairtrial.agents.program import AgentProgram
from fairtrial.agents.session import AgentSession, Launch
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.experiment import McpServer
from fairtrial.providers.conversation import merge

_TOO_MANY_TURNS = 53  # its exit code
_STATUS = re.compile(r'"code": ?(\d{3})\b')
_HTTP_ERRORS = range(400, 512)


class GeminiCli(AgentProgram):
    """Gemini CLI: one process per trial, each in a workspace and with a home of its own.

    `tools` are named as it names them (`run_shell_command`, `read_file`, `write_file`, `replace`, …); `settings` are
    those of its `settings.json`. It reads a GEMINI.md in its workspace, and puts a few lines about date and folder
    before the prompt.
    """

    title: ClassVar[str] = "Gemini CLI"
    command: ClassVar[str] = "gemini"
    package: ClassVar[str] = "@google/gemini-cli"
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    model_host: ClassVar[str] = "https://generativelanguage.googleapis.com"

    def prepare(self, session: AgentSession) -> Launch:
        settings = merge(self._settings(session), self.options.settings)
        session.write(".gemini/settings.json", msgspec.json.encode(settings))
        arguments = ["--model", self.model, "--output-format", "stream-json"]
        arguments += ["--approval-mode", "yolo", "--skip-trust"]
        system = session.system_file()
        environment = {
            "GEMINI_CLI_HOME": str(session.home),
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            **({"GEMINI_SYSTEM_MD": str(system)} if system else {}),
            **({self.key_variable: self.spec.api_key} if self.spec.api_key else {}),
            **({"GOOGLE_GEMINI_BASE_URL": self.spec.base_url} if self.spec.base_url else {}),
        }
        return Launch(arguments, environment, session.request.input)

    def _settings(self, session: AgentSession) -> dict[str, Any]:
        servers = session.request.mcp
        # Its list of tools is also one of the servers' tools; an empty one would allow all.
        tools = [*self.options.tools, *(f"mcp_{server.name}_*" for server in servers)] or ["none"]
        limit = self.options.max_turns
        return {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "maxAttempts": 1,  # the engine retries, and records why
                "retryFetchErrors": False,
            },
            "model": {"maxSessionTurns": -1 if limit is None else limit},
            "tools": {"core": tools},
            "context": {"includeDirectoryTree": False, "memoryBoundaryMarkers": []},
            "mcpServers": {server.name: _server(server, session.servers[server.name]) for server in servers},
        }

    def take(self, event: dict[str, Any], session: AgentSession) -> Failure | None:
        record, kind = session.record, event.get("type")
        if kind == "init":
            record.begin()
            record.session_id = event.get("session_id")
        elif kind == "message" and event.get("role") == "assistant":
            record.say_more(str(event.get("content") or ""))
        elif kind == "tool_use":
            server, tool = session.split_name(str(event.get("tool_name")), prefix="mcp_")
            record.call(str(event.get("tool_id")), tool, server, event.get("parameters"))
        elif kind == "tool_result":
            error = event.get("status") != "success"
            told = event.get("error") if error and event.get("error") else event.get("output")
            text = told.get("message") if isinstance(told, dict) else told
            record.returned(str(event.get("tool_id")), str(text or ""), error=error)
        elif kind == "result":
            self._take_result(event, session)
        return None

    def _take_result(self, event: dict[str, Any], session: AgentSession) -> None:
        stats = event.get("stats") or {}
        record = session.record
        record.usage = _usage(stats)
        record.turns = record.steps + 1
        record.model = next(iter(stats.get("models") or ()), None)
        record.ending = "" if event.get("status") == "success" else str((event.get("error") or {}).get("message"))

    def conclude(self, session: AgentSession, ended: Ended) -> Answer | Failure:
        record = session.record
        if ended.code == _TOO_MANY_TURNS:
            record.stopped("turns", self.options.max_turns)
            return record.unfinished()
        if record.ending == "":
            return record.answer(record.last_text)
        # Whatever its exit code says: it is 0 also where it was stopped, or where the model's reply broke off.
        if record.ending is None:
            return self.failed(session, f"it {exit_words(ended.code)}, with no result: {ended.errors}")
        status = _STATUS.search(record.ending)
        by_exit_code = ended.code + 256 if ended.code + 256 in _HTTP_ERRORS else None
        return self.failed(session, record.ending, int(status[1]) if status else by_exit_code)


def _server(server: McpServer, config: dict[str, Any]) -> dict[str, Any]:
    shared = {"trust": True, "timeout": round(1000 * max(server.timeout, 600))}
    if server.transport == "stdio":
        return {"command": config["command"], "args": config["args"], "env": config["env"], **shared}
    address = "url" if server.transport == "sse" else "httpUrl"
    return {address: config["url"], "headers": config["headers"], **shared}


def _usage(stats: dict[str, Any]) -> Usage | None:
    prompt, completion = stats.get("input_tokens") or 0, stats.get("output_tokens") or 0
    if not (prompt or completion):
        return None
    thoughts = max(0, (stats.get("total_tokens") or 0) - prompt - completion)  # counted, but not listed
    return Usage(
        prompt=prompt, completion=completion + thoughts, cache_read=stats.get("cached") or 0, reasoning=thoughts
    )
