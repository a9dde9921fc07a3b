"""`opencode`: the open agent around any model, with only the condition's tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.agents.processes.process import Ended, exit_words
from fairtrial.agents.program import AgentOptions, AgentProgram
from fairtrial.agents.session import AgentSession, Launch
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.core.providers import known_providers, provider_at
from fairtrial.core.target import Options
from fairtrial.providers.conversation import merge
from fairtrial.providers.sheet import sheet_of
from fairtrial.targets._opencode_sessions import parts_of_session

# The library that speaks the API of a model, by our name of the API; all are part of the program.
_LIBRARIES = {
    "openai_api": "@ai-sdk/openai-compatible",
    "openai_responses_api": "@ai-sdk/openai",
    "anthropic_api": "@ai-sdk/anthropic",
    "google_api": "@ai-sdk/google",
    "mistral_api": "@ai-sdk/mistral",
}
_CHAT, _RESPONSES = "openai_api", "openai_responses_api"
_VERSIONS = {"anthropic_api": "/v1", "google_api": "/v1beta"}  # of APIs, where our addresses do not have them
_EDITS = ("edit", "write", "apply_patch")  # tools that change files: opencode allows them together, as `edit`
_PROVIDER, _AGENT = "fairtrial", "trial"
_KEY = "FAIRTRIAL_MODEL_KEY"
_TOOLS_RETURN = 50_000  # tokens that the results of one step are taken to have at most
_DOWNLOADS = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE", "PRUNE")
# How the errors of calls begin that its permissions or its user forbade.
_DENIALS = ("The user has specified a rule which prevents", "The user rejected permission")
_PARTS = {"tool_use": "tool"}  # kinds of events whose part has another name
_DELEGATING = "task"  # the tool that starts a subagent
_OFF = (*_DOWNLOADS, "PROJECT_CONFIG", "CLAUDE_CODE", "EXTERNAL_SKILLS")
_FINISHED = {"stop": "stop", "length": "length", "content-filter": "content_filter"}
# In a new home it would install its plug-ins first; these say that it has.
_INSTALLED = '{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}'


class OpencodeOptions(AgentOptions, frozen=True, kw_only=True):
    """`context` and `max_output` are the model's limits in tokens, which opencode must know to keep within them."""

    context: Annotated[int, msgspec.Meta(ge=1)] = 200_000
    max_output: Annotated[int, msgspec.Meta(ge=1)] = 32_000


class Opencode(AgentProgram):
    """opencode around a model behind an API: one process per trial, each in a workspace and with a home of its own.

    `tools` are named as it names them (`bash`, `read`, `edit`, `write`, `glob`, `grep`, …); `settings` are those of its
    `opencode.json`. It adds the model's name, the folder and the date to the system prompt.
    """

    title: ClassVar[str] = "opencode"
    command: ClassVar[str] = "opencode"
    package: ClassVar[str] = "opencode-ai"
    key_variable: ClassVar[str] = ""
    options_type: ClassVar[type[Options]] = OpencodeOptions
    many_calls: ClassVar[bool] = True  # it tells the tokens of every call, and is stopped in time
    names_its_cost: ClassVar[bool] = False
    options: OpencodeOptions

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        yield from cls.program_problems(options, folder)
        if spec.api and spec.api not in _LIBRARIES:
            yield f"opencode cannot use the API of {spec.provider}"

    @classmethod
    def cautions(cls, spec: TargetSpec, options: Any) -> Iterable[str]:
        named, offered = [tool for tool in options.tools if tool in _EDITS], _edits_offered(spec.model)
        if named and set(named) != set(offered):
            given, listed = (" and ".join(f"`{tool}`" for tool in tools) for tools in (offered, named))
            yield f"opencode gives {spec.model} {given} to change files, where `tools` names {listed}"
        unsure = _library(spec) == _LIBRARIES[_CHAT] and spec.provider not in known_providers()
        if unsure and _refuses_max_tokens(spec):
            yield (
                f"opencode sends `max_tokens` to a server with the chat API, which OpenAI refuses for {spec.model}: if "
                f"{spec.provider} has the Responses API, write `kind: {_RESPONSES}` there under `providers`"
            )

    def model_hosts(self) -> list[str]:
        return [self.spec.base_url]

    def prepare(self, session: AgentSession) -> Launch:
        session.write("opencode.json", msgspec.json.encode(merge(self._settings(session), self.options.settings)))
        session.write(".config/opencode/package-lock.json", _INSTALLED)
        (session.home / ".config/opencode/node_modules").mkdir()
        session.write("models.json", "{}")
        arguments = ["run", "--pure", "--format", "json", "--model", f"{_PROVIDER}/{self.model}"]
        arguments += ["--agent", _AGENT, "--title", _AGENT]
        environment = {
            "OPENCODE_CONFIG": str(session.home / "opencode.json"),
            # It would read all models of the world first, for more than a second, and use none of them.
            "OPENCODE_MODELS_PATH": str(session.home / "models.json"),
            "XDG_CONFIG_HOME": str(session.home / ".config"),
            "XDG_DATA_HOME": str(session.home / ".local/share"),
            "XDG_STATE_HOME": str(session.home / ".local/state"),
            "XDG_CACHE_HOME": str(session.home / ".cache"),
            **{f"OPENCODE_DISABLE_{name}": "1" for name in _OFF},
            **({_KEY: self.spec.api_key} if self.spec.api_key else {}),
        }
        return Launch(arguments, environment, session.request.input)

    def _settings(self, session: AgentSession) -> dict[str, Any]:
        system, servers = session.system_file(), session.request.mcp
        named = ["edit" if tool in _EDITS else tool for tool in self.options.tools]
        tools = dict.fromkeys([*named, *(f"{server.name}_*" for server in servers)], "allow")
        limits = {"context": self.options.context, "output": self.options.max_output}
        address = self.spec.base_url + _VERSIONS.get(self.spec.api, "")
        provider = {
            "npm": _library(self.spec),
            "options": {"baseURL": address, "apiKey": f"{{env:{_KEY}}}", "headers": self.spec.headers},
            "models": {self.model: {"tool_call": True, "limit": limits}},
        }
        agent = {
            "mode": "primary",
            "permission": {"*": "deny", **tools},
            **({"prompt": f"{{file:{system}}}"} if system else {}),
            **({"steps": self.options.max_turns} if self.options.max_turns else {}),
        }
        return {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "enabled_providers": [_PROVIDER],
            "provider": {_PROVIDER: provider},
            "small_model": f"{_PROVIDER}/{self.model}",
            "agent": {_AGENT: agent, "title": {"disable": True}},
            "mcp": {server.name: _server(server, session.servers[server.name]) for server in servers},
        }

    def take(self, event: dict[str, Any], session: AgentSession) -> Answer | Failure | None:
        record, kind, part = session.record, event.get("type"), event.get("part") or {}
        record.session_id = event.get("sessionID") or record.session_id
        if kind in ("text", "reasoning", "tool_use"):
            self._take_part({**part, "type": _PARTS.get(str(kind), kind)}, session)
        elif kind == "step_finish":
            usage = _usage(part.get("tokens") or {})
            record.used(usage)
            record.turns = (record.turns or 0) + 1
            record.ending = str(part.get("reason"))
            # It tells its model that this was the last step, but does not stop one that goes on with its tools.
            if record.ending == "tool-calls" and record.turns == self.options.max_turns:
                return self.out_of_turns(session)
            return self._over_budget(session, usage)
        elif kind == "error":
            error = event.get("error") or {}
            data = error.get("data") or {}
            message, status = data.get("message") or error.get("name"), data.get("statusCode")
            return self.failed(session, str(message), status if isinstance(status, int) else None)
        return None

    def _take_part(self, part: dict[str, Any], session: AgentSession, within: str = "") -> None:
        """Record a part of what the agent said and did, or the subagent that a call started."""
        kind, text = part.get("type"), str(part.get("text") or "")
        if kind == "text":
            session.record.say(text, within=within)
        elif kind == "reasoning":
            session.record.think(text, within=within)
        elif kind == "tool":
            self._take_call(part, session, within)
        elif kind == "step-finish":
            session.record.used(_usage(part.get("tokens") or {}))

    def _take_subagent(self, call: str, state: dict[str, Any], session: AgentSession) -> None:
        """Record what a subagent did, once it has ended."""
        child = (state.get("metadata") or {}).get("sessionId")
        if not isinstance(child, str):
            return
        session.record.delegate(call, str((state.get("input") or {}).get("subagent_type") or "subagent"))
        parts = parts_of_session(session.home, child)
        if parts is None:
            session.record.uncounted = True
            session.record.note("opencode does not tell what its subagent did and used")
        for part in parts or ():
            self._take_part(part, session, call)

    def _take_call(self, part: dict[str, Any], session: AgentSession, within: str) -> None:
        server, tool = session.split_name(str(part.get("tool")))
        state, name = part.get("state") or {}, f"{within}/{part.get('callID')}" if within else str(part.get("callID"))
        session.record.call(name, tool, server, state.get("input"), within=within)
        if tool == _DELEGATING and server is None:
            self._take_subagent(name, state, session)
        if state.get("status") in ("completed", "error"):
            error = state["status"] == "error"
            times = state.get("time") or {}
            took = times["end"] - times["start"] if {"start", "end"} <= times.keys() else None
            result = str(state.get("error" if error else "output") or "")
            rejected = error and result.startswith(_DENIALS)
            session.record.returned(name, result, error=error, rejected=rejected, duration_ms=took)

    def _over_budget(self, session: AgentSession, last: Usage) -> Answer | None:
        """Return what the agent came to if it goes on and another call could cost more than it may.

        The next call sends everything again, with what the model said and what its tools returned.
        """
        allowance, usage = session.request.allowance, session.record.usage
        if allowance is None or usage is None or session.record.ending != "tool-calls":
            return None
        prompt = min(self.options.context, last.prompt + last.completion + _TOOLS_RETURN)
        if allowance.bears(usage, prompt, self.options.max_output):
            return None
        session.record.stopped("money", allowance.usd)
        return session.record.unfinished()

    def conclude(self, session: AgentSession, ended: Ended) -> Answer | Failure:
        record = session.record
        if record.ending in _FINISHED:
            record.model = self.model
            most = self.options.max_turns
            if most is not None and (record.turns or 0) >= most:  # in its last turn it is told to come to an end
                record.stopped("turns", most)
            return record.answer(record.last_text, _FINISHED[record.ending])
        if record.ending == "unknown":
            return record.failure("stream", "opencode: the model's reply broke off", retryable=True)
        return self.failed(session, f"it {exit_words(ended.code)}, with no answer: {ended.errors}")


def _library(spec: TargetSpec) -> str:
    """Return the library for a model: for OpenAI's, at whichever address, the one that sends nothing they refuse."""
    if spec.api != _CHAT:
        return _LIBRARIES[spec.api]
    at_home = provider_at(spec.base_url) == "openai"
    return _LIBRARIES[_RESPONSES if at_home or (spec.provider == "openai" and _refuses_max_tokens(spec)) else _CHAT]


def _refuses_max_tokens(spec: TargetSpec) -> bool:
    return sheet_of("openai", spec.model).limit_name == "max_completion_tokens"


def _edits_offered(model: str) -> tuple[str, ...]:
    """Return the tools that opencode has for a model to change files with."""
    patches = "gpt-" in model and "oss" not in model and "gpt-4" not in model
    return ("apply_patch",) if patches else ("edit", "write")


def _server(server: McpServer, config: dict[str, Any]) -> dict[str, Any]:
    patience = round(1000 * max(server.timeout, 600))
    if server.transport == "stdio":
        command = [config["command"], *config["args"]]
        return {"type": "local", "command": command, "environment": config["env"], "timeout": patience}
    return {"type": "remote", "url": config["url"], "headers": config["headers"], "timeout": patience}


def _usage(tokens: dict[str, Any]) -> Usage:
    """Return the tokens of one call; what was cached and what was thought are separate from the rest."""
    cache = tokens.get("cache") or {}
    read, written, thought = cache.get("read") or 0, cache.get("write") or 0, tokens.get("reasoning") or 0
    return Usage(
        prompt=(tokens.get("input") or 0) + read + written,
        completion=(tokens.get("output") or 0) + thought,
        cache_read=read,
        cache_write=written,
        reasoning=thought,
    )
