"""`claude-code`: Anthropic's agent through its SDK, with only the condition's tools.

The turns of a conversation are one session: each process goes on from a copy of the session before, so that a turn that
failed can be asked again. Sessions are kept on this machine, so that a run that was killed can go on.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar, Usage
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.trace import ToolCall, Trace, short, waiting_for
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.providers.weights import cache_folder
from fairtrial.toolbox.supervised import private_temp_folder, supervised_config, write_wrapper
from fairtrial.workspace.servers import files_of_servers

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

# The only environment variables that are passed on: those needed to run a program and to reach Anthropic.
_PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TERM",
    "SHELL",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
)
_PASSED_ON_PREFIXES = (
    "ANTHROPIC_",
    "AWS_",
    "GOOGLE_",
    "CLOUD_ML_",
    "VERTEX_",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CODE_OAUTH_",
)
_PASSED_ON_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUD_CREDENTIALS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
_STATUS_KINDS = {401: "auth", 403: "auth", 404: "model", 429: "rate_limited"}
_ERROR_KINDS = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limited",
    "server_error": "server",
    "invalid_request": "refused",
}
_RETRYABLE = {"rate_limited", "server", "mcp"}
_MAX_MESSAGE = 64 * 2**20
_KEPT_SECONDS = 14 * 24 * 3600  # that a session is kept after its last turn
_UNCONNECTED = {"failed", "needs-auth", "disabled"}


_OWN = frozenset(  # what the target sets itself, or has an option for
    [
        "setting_sources",
        "verbatim_prompts",
        "max_buffer_size",
        "model",
        "effort",
        "max_turns",
        "max_budget_usd",
        "cwd",
        "env",
        "cli_path",
        "stderr",
        "strict_mcp_config",
    ]
)


def _sdk_settings() -> frozenset[str]:
    """Return the names of the SDK's settings that a suite may set; all, if the SDK is not installed."""
    try:
        from claude_agent_sdk import ClaudeAgentOptions
    except ImportError:
        return frozenset()
    return frozenset(ClaudeAgentOptions.__dataclass_fields__) - _OWN


class ClaudeCodeOptions(Options, frozen=True, kw_only=True):
    """Built-in `tools` and the settings of user and project are off unless they are listed here."""

    model: str | None = None
    tools: list[str] = []
    setting_sources: list[Literal["user", "project", "local"]] = []
    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = 30
    max_budget_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    cwd: str | None = None
    env: dict[str, str] = {}
    sdk: dict[str, Any] = {}  # further settings of the SDK (`ClaudeAgentOptions`), by their names there


class ClaudeCode(Target):
    """Claude Code: one process of its CLI per trial, each in a workspace of its own."""

    options_type: ClassVar[type[Options]] = ClaudeCodeOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    many_calls: ClassVar[bool] = True
    takes_turns: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: ClaudeCodeOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        self._home: Path | None = None

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        known = _sdk_settings()
        for name in sorted(set(options.sdk) - known) if known else ():
            yield f"the SDK of Claude Code has no setting `{name}`, or it is one of the other options"
        environment = {**os.environ, **options.env}
        if not spec.api_key and not any(environment.get(name) for name in (*_CREDENTIALS, *_CLOUD_CREDENTIALS)):
            alternatives = ", ".join(_CREDENTIALS[1:] + _CLOUD_CREDENTIALS)
            yield f"{spec.id} has no credentials: set ANTHROPIC_API_KEY (or {alternatives})"

    @property
    def lane(self) -> str:
        return f"claude-code:{self.spec.id}"

    async def open(self, concurrency: int) -> None:
        try:
            import claude_agent_sdk
        except ImportError:
            raise NotInstalledError(self.spec.id, "agents") from None
        self._home = private_temp_folder("fairtrial-claude")
        bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
        program = str(bundled) if bundled.is_file() else shutil.which("claude")
        if program is None:
            raise NotInstalledError(self.spec.id, "agents")
        await asyncio.to_thread(_forget_old_sessions)
        self._program, self._wrapper = program, write_wrapper(self._home / "claude", program)
        self._version = await _version_of(program)

    async def close(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def workspace_of(self, spec: WorkspaceSpec | None) -> WorkspaceSpec | None:
        """Return an empty workspace if the suite says nothing about it, and none if all trials share a folder."""
        return None if self._options.cwd else spec or WorkspaceSpec()

    @classmethod
    def workspace_problem(cls, spec: TargetSpec, workspace: WorkspaceSpec) -> str:
        if spec.options.get("cwd"):
            return f"{spec.id} has a `cwd` that all trials share, and a `workspace` for each: keep one of them"
        return ""

    def model_hosts(self) -> list[str]:
        environment = {**os.environ, **self._options.env}
        return [self.spec.base_url or environment.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"]

    def sent(self, request: Request) -> dict[str, Any]:
        """Return nothing: Claude Code chooses its parameters itself."""
        return {}

    def versions(self) -> dict[str, str]:
        return {"Claude Code": self._version, "claude-agent-sdk": version("claude-agent-sdk")}

    async def ask(self, request: Request) -> Answer | Failure:
        if request.session is None:
            assert self._home is not None
            with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as folder:
                return await self._ask_in(Path(folder), request)
        place = await asyncio.to_thread(_session_folder, request.session)
        if place is None:
            message = "the session of the earlier turns is not on this machine any more: run the suite again"
            return Failure(kind="session", message=message)
        answer = await self._ask_in(place, request)
        if isinstance(answer, Answer) and answer.trace and answer.trace.get("session_id"):
            await asyncio.to_thread(_keep_session, str(answer.trace["session_id"]), place)
        return answer

    async def _ask_in(self, folder: Path, request: Request) -> Answer | Failure:
        """Let the agent work, with its settings and sessions in a folder."""
        from claude_agent_sdk import ClaudeSDKError, query

        log = _SessionLog([server.name for server in request.mcp])
        request.journal.read = log.so_far
        errors: list[str] = []
        messages = query(prompt=request.input, options=self._sdk_options(request, folder, errors))
        try:
            async for message in messages:
                failure = log.take(message)
                if failure is not None:
                    return failure
        except ClaudeSDKError as error:
            return log.failure_of(error, errors)
        finally:
            await messages.aclose()  # type: ignore[attr-defined]  # it is a generator: closing it ends the process
        return log.result()

    def _sdk_options(self, request: Request, folder: Path, errors: list[str]) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        options = self._options
        work = self._folder_of(request, folder)
        _move_project(folder / "config", work)
        environment = self._environment(request, folder)
        # Use files, because every user of the machine can read command lines.
        configs = {server.name: supervised_config(server) for server in request.mcp}
        configs |= options.sdk.get("mcp_servers") or {}
        (folder / "mcp.json").write_bytes(msgspec.json.encode({"mcpServers": configs}))
        (folder / "system.txt").write_text(request.system, "utf-8")
        limits = [options.max_budget_usd, request.allowance.usd if request.allowance else None]
        settings: dict[str, Any] = {
            "tools": list(options.tools),
            "allowed_tools": [*options.tools, *(f"mcp__{name}" for name in configs)],
            "permission_mode": "dontAsk",
            "system_prompt": {"type": "file", "path": str(folder / "system.txt")} if request.system else None,
            **{name: value for name, value in options.sdk.items() if name != "mcp_servers"},
            **({"resume": request.session, "fork_session": True} if request.session else {}),
        }
        return ClaudeAgentOptions(
            **settings,
            mcp_servers=str(folder / "mcp.json"),
            strict_mcp_config=True,
            setting_sources=list(options.setting_sources),
            verbatim_prompts=True,  # a case may contain `@/etc/passwd` or `/cost`: that is text, not a command
            max_buffer_size=_MAX_MESSAGE,
            model=self.spec.model or options.model,
            effort=options.effort,
            max_turns=options.max_turns,
            max_budget_usd=min((limit for limit in limits if limit is not None), default=None),
            cwd=str(work),
            cli_path=str(self._enclosed(request, folder, environment)),
            env=_kept(environment),
            stderr=lambda line: errors.append(line) if len(errors) < 200 else None,
        )

    def _folder_of(self, request: Request, folder: Path) -> Path:
        """Return where the agent works."""
        if self._options.cwd:
            return (self.folder / self._options.cwd).resolve()
        work = request.workspace.folder if request.workspace else folder / "work"
        work.mkdir(exist_ok=True)
        return work

    def _enclosed(self, request: Request, folder: Path, environment: dict[str, str]) -> Path:
        """Return the script that starts the agent; in a sandbox, it is the trial's own, and some variables change."""
        workspace = request.workspace
        if workspace is None or workspace.spec.sandbox == "none":
            return self._wrapper
        enclosed = workspace.enclose(
            [self._program], environment, read=files_of_servers(request.mcp), write=[folder.resolve()]
        )
        environment.update(enclosed.environment)
        return write_wrapper(folder / "claude", *enclosed.command)

    def _environment(self, request: Request, folder: Path) -> dict[str, str]:
        timeout = max((server.timeout for server in request.mcp), default=None)
        agent_variables = {
            "CLAUDE_CONFIG_DIR": str(folder / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",  # the engine retries, and records why
            **({"MCP_TIMEOUT": f"{1000 * timeout:.0f}"} if timeout else {}),
            **({"ANTHROPIC_API_KEY": self.spec.api_key} if self.spec.api_key else {}),
            **({"ANTHROPIC_BASE_URL": self.spec.base_url} if self.spec.base_url else {}),
            **self._options.env,
        }
        passed_on = {
            name: value
            for name, value in os.environ.items()
            if name in (*_PASSED_ON, *_PASSED_ON_PROXIES)
            or name.startswith(_PASSED_ON_PREFIXES)
            or name.startswith("LC_")
        }
        return {**passed_on, **agent_variables}


def _kept(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment with the word for the supervisor to keep only this of what the SDK passes on."""
    sdk_variables = (
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH",
        "PWD",
    )
    return {**environment, "FAIRTRIAL_KEEP": ",".join((*environment, *sdk_variables))}


def _move_project(config: Path, work: Path) -> None:
    """Let the agent find the session of an earlier turn: it looks for sessions by the folder in which it works."""
    place = config / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(work))
    earlier = next((path for path in place.parent.glob("*") if path.is_dir()), None)
    if earlier is not None and not place.exists():
        earlier.rename(place)


def _sessions() -> Path:
    """Return the folder of the sessions that conversations go on with, which only this user can read."""
    place = cache_folder() / "sessions"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def _session_folder(session: str) -> Path | None:
    """Return the folder in which a session was held, or a new one for the first turn; None if it is gone."""
    if not session:
        return Path(tempfile.mkdtemp(prefix="claude-", dir=_sessions()))
    try:
        folder = _sessions() / (_sessions() / f"{Path(session).name}.session").read_text("utf-8")
    except OSError:
        return None
    return folder if folder.is_dir() else None


def _keep_session(session: str, folder: Path) -> None:
    """Note in which folder a session was held."""
    (_sessions() / f"{session}.session").write_text(folder.name, "utf-8")
    os.utime(folder)


def _forget_old_sessions() -> None:
    """Remove the sessions that nobody went on with for a while."""
    for path in _sessions().iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


class _SessionLog:
    """What the SDK has reported about one session."""

    def __init__(self, servers: list[str]) -> None:
        self._wanted = servers
        self._started = time.perf_counter()
        self._first: float | None = None
        self._servers: dict[str, str] = {}
        self._messages: list[dict[str, Any]] = []
        self._calls: dict[str, ToolCall] = {}
        self._called_at: dict[str, float] = {}
        self._answered_calls: set[str] = set()
        self._usages: dict[str, dict[str, Any]] = {}  # by reply of the model, as far as reported
        self._error: str | None = None
        self._model: str | None = None
        self._result: Any = None

    def take(self, message: Any) -> Failure | None:
        """Process a message; return a failure if there is no point in continuing."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, UserMessage

        if isinstance(message, SystemMessage) and message.subtype == "init":
            self._started = time.perf_counter()  # start-up of the agent and its servers does not count as latency
            self._servers = {server["name"]: server["status"] for server in message.data.get("mcp_servers") or ()}
            return self._unconnected()
        if isinstance(message, AssistantMessage):
            self._first = self._first or time.perf_counter()
            self._model, self._error = message.model, message.error or self._error
            self._usages[message.message_id or ""] = message.usage or {}
            for block in message.content:
                self._add_block(block)
        elif isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                self._add_tool_result(block)
        elif isinstance(message, ResultMessage):
            self._result = message
        return None

    def _unconnected(self) -> Failure | None:
        for name in self._wanted:
            status = self._servers.get(name, "not listed")
            if status in _UNCONNECTED or status == "not listed":
                message = f"the MCP server `{name}` did not connect ({status})"
                return Failure(kind="mcp", message=message, retryable=True)
        return None

    def _add_block(self, block: Any) -> None:
        from claude_agent_sdk import TextBlock, ThinkingBlock, ToolUseBlock

        if isinstance(block, TextBlock):
            self._messages.append({"role": "assistant", "text": block.text})
        elif isinstance(block, ThinkingBlock):
            self._messages.append({"role": "assistant", "thinking": block.thinking})
        elif isinstance(block, ToolUseBlock):
            server, tool = self._split(block.name)
            self._calls[block.id] = ToolCall(tool=tool, server=server, arguments=block.input)
            self._called_at[block.id] = time.perf_counter()

    def _add_tool_result(self, block: Any) -> None:
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
        """Split `mcp__server__tool` into its parts; the agent's built-in tools have no server."""
        for server in self._wanted:
            if name.startswith(f"mcp__{server}__"):
                return server, name.removeprefix(f"mcp__{server}__")
        return None, name

    def result(self) -> Answer | Failure:
        """Return the result of the session."""
        done = self._result
        if done is None:
            return Failure(kind="crashed", message="Claude Code ended without a result", retryable=True)
        if done.is_error or done.subtype != "success":
            return self._failed(done)
        pending = [name for name in self._wanted if self._servers.get(name) == "pending" and not self._used(name)]
        if pending:
            # Not retryable: asking until the tool is used would select answers.
            message = f"the MCP server `{pending[0]}` was still connecting when the agent started"
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
        """Return the trace so far."""
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
        """Return what is known about a session that has not ended."""
        usages = [usage for reported in self._usages.values() if (usage := _usage(reported)) is not None]
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
            limit = "turn" if done.subtype == "error_max_turns" else "cost"
            message = f"no answer: stopped after {done.num_turns} turns at its {limit} limit"
            return Failure(kind="steps", message=message, usage=usage, cost_usd=_cost(done), trace=self._trace())
        status = done.api_error_status
        kind = _STATUS_KINDS.get(status) or ("server" if status and status >= 500 else None)
        kind = kind or _ERROR_KINDS.get(self._error or "", "crashed")
        reasons = [done.result or "", *(done.errors or ())]
        message = "Claude Code: " + (" ".join(filter(None, reasons)) or done.subtype)
        return Failure(
            kind=kind,
            message=message,
            retryable=kind in _RETRYABLE,
            usage=usage,
            cost_usd=_cost(done),
            trace=self._trace(),
        )

    def failure_of(self, error: Exception, errors: list[str]) -> Failure:
        """Turn an SDK exception into a failure; an earlier failed result is more informative, and is preferred."""
        if self._result is not None and (self._result.is_error or self._result.subtype != "success"):
            return self._failed(self._result)
        output = " ".join(" ".join(errors).split())[-1500:]
        message = f"Claude Code: {error}" + (f"; it wrote: {output}" if output else "")
        return Failure(kind="crashed", message=message, trace=self._trace())


async def _version_of(program: str) -> str:
    process = await asyncio.create_subprocess_exec(program, "--version", stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    output, _ = await process.communicate()
    return output.decode("utf-8", "replace").partition(" ")[0].strip() or "unknown"


def _usage(reported: dict[str, Any] | None) -> Usage | None:
    if not reported:
        return None
    read, written = reported.get("cache_read_input_tokens") or 0, reported.get("cache_creation_input_tokens") or 0
    return Usage(
        prompt=(reported.get("input_tokens") or 0) + read + written,
        completion=reported.get("output_tokens") or 0,
        cache_read=read,
        cache_write=written,
        reasoning=(reported.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    )


def _cost(done: Any) -> float | None:
    """Return the cost, or None for an unknown model, for which Claude Code makes up a price."""
    models = (done.model_usage or {}).values()
    if any(model.get("costBasis") == "unknown" for model in models):
        return None
    return done.total_cost_usd  # type: ignore[no-any-return]
