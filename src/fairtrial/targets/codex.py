"""`codex`: OpenAI's agent, with only the condition's tools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.agents.processes.process import Ended, exit_words
from fairtrial.agents.program import AgentOptions, AgentProgram, output_of
from fairtrial.agents.session import AgentSession, Launch
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.core.target import Options
from fairtrial.providers.conversation import merge
from fairtrial.targets._codex_rollout import add_untold

# Its built-in tools, and what turns each of them on.
_TOOLS = {
    "shell": ("shell_tool", "unified_exec"),
    "view_image": ("view_image",),
    "image_generation": ("image_generation",),
    "multi_agent": ("multi_agent",),
    "goals": ("goals",),
    "apply_patch": (),
    "web_search": (),
}
# What its catalogue gives a model beyond that, for the tool it comes with; None: never. In "code mode" tools are not
# offered but called from a script, MCP servers behind a search, and what was done would be known in part only.
_OF_MODEL = {
    "tool_mode": None,
    "use_responses_lite": None,
    "supports_search_tool": None,
    "experimental_supported_tools": None,
    "multi_agent_version": "multi_agent",
    "apply_patch_tool_type": "apply_patch",
}
_WITHOUT = {"supports_search_tool": False, "use_responses_lite": False, "experimental_supported_tools": []}
_OFF = ("plugins", "apps", "hooks", "shell_snapshot", "tool_suggest", "unbounded_connection_retries")
_DECLINED = "declined"  # the status of what its permissions or its user forbade
_STATUS = re.compile(r"status:? (\d{3})\b")
_TOOL_TIMEOUT = 600  # seconds: the trial's time limit comes first


class CodexOptions(AgentOptions, frozen=True, kw_only=True):
    """`output_schema` is a JSON schema that its answers fit."""

    output_schema: dict[str, Any] = {}


class Codex(AgentProgram):
    """Codex: `codex exec`, one process per trial, each in a workspace and with a CODEX_HOME of its own.

    `tools` may have `shell`, `view_image`, `image_generation`, `multi_agent`, `goals`, `apply_patch` and `web_search`;
    `settings` are those of its `config.toml`.
    """

    title: ClassVar[str] = "Codex"
    command: ClassVar[str] = "codex"
    package: ClassVar[str] = "@openai/codex"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    model_host: ClassVar[str] = "https://api.openai.com"
    options_type: ClassVar[type[Options]] = CodexOptions
    options: CodexOptions

    _catalogue: bytes = b""  # what it knows about its model, with the tools of the condition; empty: nothing

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        yield from super().check(spec, options, folder)
        for name in options.tools:
            if name not in _TOOLS:
                yield f"Codex has no tool `{name}`; it has {', '.join(_TOOLS)}"

    async def open(self, concurrency: int) -> None:
        await super().open(concurrency)
        assert self._home is not None
        printed = await output_of([self._program, "debug", "models"], self._home)
        self._catalogue = _with_tools(printed, self.model, self.options.tools)

    def prepare(self, session: AgentSession) -> Launch:
        session.write("config.toml", _toml_document(merge(self._settings(session), self.options.settings)))
        tools = self.options.tools
        arguments = ["exec", "--json", "--ignore-rules", "--skip-git-repo-check"]
        arguments += ["--cd", str(session.folder), "--model", self.model]
        if self.options.output_schema:
            schema = session.write("schema.json", msgspec.json.encode(self.options.output_schema))
            arguments += ["--output-schema", str(schema)]
        off = [*_OFF, *(feature for tool, features in _TOOLS.items() if tool not in tools for feature in features)]
        arguments += [part for feature in off for part in ("--disable", feature)]
        environment = {"CODEX_HOME": str(session.home)}
        if self.spec.api_key:
            environment[self.key_variable] = self.spec.api_key
        return Launch([*arguments, "-"], environment, session.request.input)

    def _settings(self, session: AgentSession) -> dict[str, Any]:
        provider = {
            "name": "fairtrial",
            "base_url": self.spec.base_url or f"{self.model_host}/v1",
            "env_key": self.key_variable,
            "wire_api": "responses",
            "request_max_retries": 0,  # the engine retries, and records why
            "stream_max_retries": 0,
        }
        system = session.system_file()
        catalogue = session.write("models.json", self._catalogue) if self._catalogue else None
        return {
            **({"model_catalog_json": str(catalogue)} if catalogue else {}),
            **({"model_instructions_file": str(system)} if system else {}),
            "model_provider": "fairtrial",
            "approval_policy": "never",
            "sandbox_mode": "danger-full-access",  # the workspace is the sandbox
            "check_for_update_on_startup": False,
            "include_environment_context": bool(self.options.tools),
            "include_permissions_instructions": False,
            "include_apps_instructions": False,
            "project_doc_max_bytes": 0,  # AGENTS.md is not part of the condition
            "web_search": "live" if "web_search" in self.options.tools else "disabled",
            "analytics": {"enabled": False},
            "feedback": {"enabled": False},
            "history": {"persistence": "none"},
            "skills": {"include_instructions": False, "bundled": {"enabled": False}},
            "model_providers": {"fairtrial": provider},
            "mcp_servers": {
                server.name: _server(server, session.servers[server.name]) for server in session.request.mcp
            },
        }

    def take(self, event: dict[str, Any], session: AgentSession) -> Answer | Failure | None:
        record, kind = session.record, event.get("type")
        if kind == "thread.started":
            record.session_id = event.get("thread_id")
        elif kind == "turn.started":
            record.begin()
        elif kind in ("item.started", "item.completed"):
            self._take_item(event.get("item") or {}, session, done=kind == "item.completed")
            return self.turns_over(session)
        elif kind == "turn.completed":
            record.usage = _usage(event.get("usage") or {})
        elif kind == "turn.failed":
            message = str((event.get("error") or {}).get("message") or "it failed without a reason")
            status = _STATUS.search(message)
            return self.failed(session, message, int(status[1]) if status else None)
        return None

    def _take_item(self, item: dict[str, Any], session: AgentSession, *, done: bool) -> None:
        record, kind, name = session.record, item.get("type"), str(item.get("id"))
        if kind == "agent_message":
            record.say(str(item.get("text") or ""))
        elif kind == "reasoning":
            record.think(str(item.get("text") or ""))
        elif kind == "mcp_tool_call":
            record.call(name, str(item.get("tool")), item.get("server"), item.get("arguments"))
            if done:
                result = _result(item)
                rejected = result.startswith("user rejected")
                record.returned(name, result, error=item.get("status") != "completed", rejected=rejected)
        elif kind == "command_execution":
            record.call(name, "shell", None, {"command": item.get("command")})
            if done:
                rejected, failed = item.get("status") == _DECLINED, bool(item.get("exit_code"))
                record.returned(name, str(item.get("aggregated_output") or ""), error=failed, rejected=rejected)
        elif kind in ("file_change", "web_search", "collab_tool_call"):
            told = {key: value for key, value in item.items() if key not in ("id", "type", "status", "tool")}
            record.call(name, str(item.get("tool") or kind), None, told)
            if done:
                status = item.get("status")
                record.returned(name, "", error=status == "failed", rejected=status == _DECLINED)

    def conclude(self, session: AgentSession, ended: Ended) -> Answer | Failure:
        add_untold(session.record, session.home)
        if session.record.usage is not None:  # the turn was completed
            session.record.model, session.record.turns = self.model, session.record.rounds + 1
            return session.record.answer(session.record.last_text)
        message = ended.errors or "it wrote nothing"
        return self.failed(session, f"it {exit_words(ended.code)} before its turn was completed: {message}")


def _server(server: McpServer, config: dict[str, Any]) -> dict[str, Any]:
    shared = {
        "required": True,  # or the first request leaves without its tools
        "startup_timeout_sec": server.timeout,
        "tool_timeout_sec": _TOOL_TIMEOUT,
        "default_tools_approval_mode": "approve",
    }
    if server.transport == "stdio":
        return {"command": config["command"], "args": config["args"], "env": config["env"], **shared}
    return {"url": config["url"], "http_headers": config["headers"], **shared}


def _result(item: dict[str, Any]) -> str:
    error = item.get("error")
    if error:
        return str(error.get("message") if isinstance(error, dict) else error)
    result = item.get("result") or {}
    texts = [block.get("text") or f"[{block.get('type')}]" for block in result.get("content") or ()]
    structured = result.get("structured_content")
    return "\n".join(texts) or (msgspec.json.encode(structured).decode() if structured is not None else "")


def _usage(reported: dict[str, Any]) -> Usage:
    return Usage(
        prompt=reported.get("input_tokens") or 0,
        completion=reported.get("output_tokens") or 0,
        cache_read=reported.get("cached_input_tokens") or 0,
        cache_write=reported.get("cache_write_input_tokens") or 0,
        reasoning=reported.get("reasoning_output_tokens") or 0,
    )


def _toml_document(settings: dict[str, Any]) -> str:
    """Write settings as TOML; tables are written inline."""
    return "".join(f"{_toml(name)} = {_toml(value)}\n" for name, value in settings.items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(name)} = {_toml(v)}" for name, v in value.items() if v is not None) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # Texts, numbers and truth values are written as in JSON, but for one character.
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _with_tools(catalogue: bytes, model: str, tools: list[str]) -> bytes:
    """Return what Codex knows about a model, without the tools that are not listed; empty if it does not know it."""
    try:
        models = msgspec.json.decode(catalogue)["models"]
        known = next(dict(entry) for entry in models if entry["slug"] == model)
    except (msgspec.DecodeError, LookupError, TypeError, StopIteration):
        return b""
    for key, tool in _OF_MODEL.items():
        if key in known and tool not in tools:
            known[key] = _WITHOUT.get(key)
    return msgspec.json.encode({"models": [known]})
