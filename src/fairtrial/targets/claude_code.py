"""`claude-code`: Anthropic's agent through its SDK, with the condition's tools and nothing else."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar, Usage
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.trace import ToolCall, Trace, short, waiting_for
from fairtrial.toolbox.supervised import own_folder, supervised_config, write_wrapper

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

# Of our environment it gets what a program needs to run and to reach Anthropic, and nothing else.
_KEPT = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TERM", "SHELL", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
_KEPT_STARTS = ("ANTHROPIC_", "AWS_", "GOOGLE_", "CLOUD_ML_", "VERTEX_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_OAUTH_")
_KEPT_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_WAYS_IN = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_WAYS_IN_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
_STATUS_KINDS = {401: "auth", 403: "auth", 404: "model", 429: "rate_limited"}
_ERROR_KINDS = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limited",
    "server_error": "server",
    "invalid_request": "refused",
}
_WORTH_ANOTHER_TRY = {"rate_limited", "server", "mcp"}
_MOST_MESSAGE = 64 * 2**20
_UNCONNECTED = {"failed", "needs-auth", "disabled"}


class ClaudeCodeOptions(Options, frozen=True, kw_only=True):
    """Built-in `tools` are off, and so are settings of user and project, unless they are named here."""

    model: str | None = None
    tools: list[str] = []
    setting_sources: list[Literal["user", "project", "local"]] = []
    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = 30
    max_budget_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    cwd: str | None = None
    env: dict[str, str] = {}


class ClaudeCode(Target):
    """One process of the Claude Code CLI for each trial, in an empty folder of its own."""

    options_type: ClassVar[type[Options]] = ClaudeCodeOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    many_calls: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: ClaudeCodeOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        self._home: Path | None = None

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        environment = {**os.environ, **options.env}
        if not spec.api_key and not any(environment.get(name) for name in (*_WAYS_IN, *_WAYS_IN_CLOUDS)):
            yield f"{spec.id} needs a way in: set ANTHROPIC_API_KEY (or {', '.join(_WAYS_IN[1:] + _WAYS_IN_CLOUDS)})"

    @property
    def lane(self) -> str:
        return f"claude-code:{self.spec.id}"

    async def open(self, concurrency: int) -> None:
        try:
            import claude_agent_sdk
        except ImportError:
            raise NotInstalledError(self.spec.id, "agents") from None
        self._home = own_folder("fairtrial-claude")
        bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
        program = str(bundled) if bundled.is_file() else shutil.which("claude")
        if program is None:
            raise NotInstalledError(self.spec.id, "agents")
        self._program = write_wrapper(self._home / "claude", program)
        self._version = await _version_of(program)

    async def close(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def sent(self, request: Request) -> dict[str, Any]:
        """Nothing: Claude Code chooses its parameters itself."""
        return {}

    def versions(self) -> dict[str, str]:
        return {"Claude Code": self._version, "claude-agent-sdk": version("claude-agent-sdk")}

    async def ask(self, request: Request) -> Answer | Failure:
        from claude_agent_sdk import ClaudeSDKError, query

        assert self._home is not None
        seen = _Seen([server.name for server in request.mcp])
        request.journal.read = seen.so_far
        errors: list[str] = []
        with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as place:
            messages = query(prompt=request.input, options=self._sdk_options(request, Path(place), errors))
            try:
                async for message in messages:
                    failure = seen.take(message)
                    if failure is not None:
                        return failure
            except ClaudeSDKError as error:
                return seen.failure_of(error, errors)
            finally:
                await messages.aclose()  # type: ignore[attr-defined]  # it is a generator: this ends the process
        return seen.result()

    def _sdk_options(self, request: Request, place: Path, errors: list[str]) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        options = self._options
        work = place / "work"
        work.mkdir()
        # Files, because everybody on the machine can read a command line.
        configs = {server.name: supervised_config(server) for server in request.mcp}
        (place / "mcp.json").write_bytes(msgspec.json.encode({"mcpServers": configs}))
        (place / "system.txt").write_text(request.system, "utf-8")
        limits = [options.max_budget_usd, request.allowance.usd if request.allowance else None]
        return ClaudeAgentOptions(
            tools=list(options.tools),
            allowed_tools=[*options.tools, *(f"mcp__{server.name}" for server in request.mcp)],
            permission_mode="dontAsk",
            mcp_servers=str(place / "mcp.json"),
            strict_mcp_config=True,
            setting_sources=list(options.setting_sources),
            system_prompt={"type": "file", "path": str(place / "system.txt")} if request.system else None,
            verbatim_prompts=True,  # a case may say `@/etc/passwd` or `/cost`: that is text, not a command
            max_buffer_size=_MOST_MESSAGE,
            model=self.spec.model or options.model,
            effort=options.effort,
            max_turns=options.max_turns,
            max_budget_usd=min((limit for limit in limits if limit is not None), default=None),
            cwd=str((self.folder / options.cwd).resolve()) if options.cwd else str(work),
            env=self._environment(request, place),
            cli_path=str(self._program),
            stderr=lambda line: errors.append(line) if len(errors) < 200 else None,
        )

    def _environment(self, request: Request, place: Path) -> dict[str, str]:
        patience = max((server.timeout for server in request.mcp), default=None)
        own = {
            "CLAUDE_CONFIG_DIR": str(place / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",  # retrying is the engine's, which knows how and says why
            **({"MCP_TIMEOUT": f"{1000 * patience:.0f}"} if patience else {}),
            **({"ANTHROPIC_API_KEY": self.spec.api_key} if self.spec.api_key else {}),
            **({"ANTHROPIC_BASE_URL": self.spec.base_url} if self.spec.base_url else {}),
            **self._options.env,
        }
        kept = [
            name
            for name in os.environ
            if name in (*_KEPT, *_KEPT_PROXIES) or name.startswith(_KEPT_STARTS) or name.startswith("LC_")
        ]
        # The SDK hands on all of our environment; the leash that the program is on keeps only these.
        sdk = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH", "PWD")
        return {**own, "FAIRTRIAL_KEEP": ",".join((*kept, *own, *sdk))}


class _Seen:
    """What the SDK has told of one session."""

    def __init__(self, servers: list[str]) -> None:
        self._wanted = servers
        self._started = time.perf_counter()
        self._first: float | None = None
        self._servers: dict[str, str] = {}
        self._messages: list[dict[str, Any]] = []
        self._calls: dict[str, ToolCall] = {}
        self._called_at: dict[str, float] = {}
        self._answered_calls: set[str] = set()
        self._usages: dict[str, dict[str, Any]] = {}  # of each reply of the model, as far as it came
        self._error: str | None = None
        self._model: str | None = None
        self._result: Any = None

    def take(self, message: Any) -> Failure | None:
        """One message; a failure where it makes no sense to go on."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, UserMessage

        if isinstance(message, SystemMessage) and message.subtype == "init":
            self._started = time.perf_counter()  # until now it and its servers were starting, which is no latency
            self._servers = {server["name"]: server["status"] for server in message.data.get("mcp_servers") or ()}
            return self._unconnected()
        if isinstance(message, AssistantMessage):
            self._first = self._first or time.perf_counter()
            self._model, self._error = message.model, message.error or self._error
            self._usages[message.message_id or ""] = message.usage or {}
            for block in message.content:
                self._said(block)
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                self._answered(block)
        elif isinstance(message, ResultMessage):
            self._result = message
        return None

    def _unconnected(self) -> Failure | None:
        for name in self._wanted:
            status = self._servers.get(name, "not there")
            if status in _UNCONNECTED or status == "not there":
                message = f"the MCP server `{name}` did not connect ({status})"
                return Failure(kind="mcp", message=message, retryable=True)
        return None

    def _said(self, block: Any) -> None:
        from claude_agent_sdk import TextBlock, ThinkingBlock, ToolUseBlock

        if isinstance(block, TextBlock):
            self._messages.append({"role": "assistant", "text": block.text})
        elif isinstance(block, ThinkingBlock):
            self._messages.append({"role": "assistant", "thinking": block.thinking})
        elif isinstance(block, ToolUseBlock):
            server, tool = self._split(block.name)
            self._calls[block.id] = ToolCall(tool=tool, server=server, arguments=block.input)
            self._called_at[block.id] = time.perf_counter()

    def _answered(self, block: Any) -> None:
        from claude_agent_sdk import ToolResultBlock

        if not isinstance(block, ToolResultBlock) or block.tool_use_id not in self._calls:
            return
        self._answered_calls.add(block.tool_use_id)
        parts = [block.content] if isinstance(block.content, str) else [p.get("text", "") for p in block.content or ()]
        self._calls[block.tool_use_id] = msgspec.structs.replace(
            self._calls[block.tool_use_id],
            result=short("\n".join(parts)),
            error=bool(block.is_error),
            duration_ms=(time.perf_counter() - self._called_at[block.tool_use_id]) * 1000,
        )

    def _split(self, name: str) -> tuple[str | None, str]:
        """`mcp__server__tool` into its parts; a tool of the agent's own has no server."""
        for server in self._wanted:
            if name.startswith(f"mcp__{server}__"):
                return server, name.removeprefix(f"mcp__{server}__")
        return None, name

    def result(self) -> Answer | Failure:
        """How the session ended."""
        done = self._result
        if done is None:
            return Failure(kind="crashed", message="Claude Code ended without a result", retryable=True)
        if done.is_error or done.subtype != "success":
            return self._failed(done)
        pending = [name for name in self._wanted if self._servers.get(name) == "pending" and not self._used(name)]
        if pending:
            # Not worth another try: to ask until the tool was used would select answers.
            message = f"the MCP server `{pending[0]}` was still connecting when the agent began"
            return Failure(kind="mcp", message=message, usage=_usage(done.usage), trace=self._trace())
        return Answer(
            text=done.result or "",
            finish_reason={"end_turn": "stop", "max_tokens": "length"}.get(done.stop_reason or "", done.stop_reason),
            usage=_usage(done.usage),
            model=self._model,
            latency_ms=(time.perf_counter() - self._started) * 1000,
            first_token_ms=(self._first - self._started) * 1000 if self._first else None,
            reasoning="\n".join(m["thinking"] for m in self._messages if "thinking" in m) or None,
            trace=self._trace(),
            cost_usd=_cost(done),
        )

    def _trace(self) -> dict[str, Any]:
        """What was done so far."""
        return Trace(
            tool_calls=self._all_calls(),
            messages=tuple(self._messages),
            servers=self._servers,
            turns=self._result.num_turns if self._result else None,
            session_id=self._result.session_id if self._result else None,
        ).as_dict()

    def _all_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            call if name in self._answered_calls else msgspec.structs.replace(call, unfinished=True)
            for name, call in self._calls.items()
        )

    def so_far(self) -> SoFar:
        """What is known of a session that has not ended."""
        usages = [usage for found in self._usages.values() if (usage := _usage(found)) is not None]
        return SoFar(
            doing=waiting_for(self._all_calls()),
            usage=sum(usages[1:], usages[0]) if usages else None,
            trace=self._trace(),
        )

    def _used(self, server: str) -> bool:
        return any(call.server == server and not call.error for call in self._calls.values())

    def _failed(self, done: Any) -> Failure:
        usage = _usage(done.usage)
        if done.subtype in ("error_max_turns", "error_max_budget_usd"):
            what = "turns" if done.subtype == "error_max_turns" else "dollars"
            message = f"no answer: it stopped after {done.num_turns} turns at its limit of {what}"
            return Failure(kind="steps", message=message, usage=usage, cost_usd=_cost(done), trace=self._trace())
        status = done.api_error_status
        kind = _STATUS_KINDS.get(status) or ("server" if status and status >= 500 else None)
        kind = kind or _ERROR_KINDS.get(self._error or "", "crashed")
        reasons = [done.result or "", *(done.errors or ())]
        message = "Claude Code: " + (" ".join(filter(None, reasons)) or done.subtype)
        return Failure(
            kind=kind,
            message=message,
            retryable=kind in _WORTH_ANOTHER_TRY,
            usage=usage,
            cost_usd=_cost(done),
            trace=self._trace(),
        )

    def failure_of(self, error: Exception, errors: list[str]) -> Failure:
        """An exception of the SDK as a failure; the result that came before it says more."""
        if self._result is not None and (self._result.is_error or self._result.subtype != "success"):
            return self._failed(self._result)
        said = " ".join(" ".join(errors).split())[-1500:]
        message = f"Claude Code: {error}" + (f"; it wrote: {said}" if said else "")
        return Failure(kind="crashed", message=message, trace=self._trace())


async def _version_of(program: str) -> str:
    process = await asyncio.create_subprocess_exec(program, "--version", stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    output, _ = await process.communicate()
    return output.decode("utf-8", "replace").partition(" ")[0].strip() or "unknown"


def _usage(found: dict[str, Any] | None) -> Usage | None:
    if not found:
        return None
    read, written = found.get("cache_read_input_tokens") or 0, found.get("cache_creation_input_tokens") or 0
    return Usage(
        prompt=(found.get("input_tokens") or 0) + read + written,
        completion=found.get("output_tokens") or 0,
        cache_read=read,
        cache_write=written,
        reasoning=(found.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    )


def _cost(done: Any) -> float | None:
    """What it cost; for a model that it does not know Claude Code invents a price, which is none."""
    models = (done.model_usage or {}).values()
    if any(model.get("costBasis") == "unknown" for model in models):
        return None
    return done.total_cost_usd  # type: ignore[no-any-return]
