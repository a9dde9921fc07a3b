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
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.agents.processes.supervised import private_temp_folder, write_wrapper
from fairtrial.agents.program import CodingAgent, version_of
from fairtrial.agents.record import Record
from fairtrial.agents.surroundings import Env, clean_environment, given_variables, server_configs, ways_in
from fairtrial.agents.workspace.archive import unpack
from fairtrial.agents.workspace.servers import files_of_servers
from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.core.folders import cache_folder
from fairtrial.core.target import Options
from fairtrial.targets._claude_messages import ClaudeMessages, SessionTotals

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

# Variables that lead Claude Code to its model.
_WAYS_IN = (
    *("ANTHROPIC_", "AWS_", "GOOGLE_", "CLOUD_ML_", "VERTEX_"),
    *(f"CLAUDE_CODE_{name}_" for name in ("USE", "SKIP", "CLIENT", "OAUTH")),
)
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUD_CREDENTIALS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
_MAX_MESSAGE = 64 * 2**20
_KEPT_SECONDS = 14 * 24 * 3600  # that a session is kept after its last turn
_OWN = frozenset(  # what the target sets itself, or has an option for
    [
        *("model", "effort", "max_turns", "max_budget_usd", "max_buffer_size", "verbatim_prompts"),
        *("setting_sources", "strict_mcp_config", "cwd", "env", "cli_path", "stderr"),
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
    env: Env = {}
    sdk: dict[str, Any] = {}  # further settings of the SDK (`ClaudeAgentOptions`), by their names there


class ClaudeCode(CodingAgent):
    """Claude Code: one process of its CLI per trial, each in a workspace of its own."""

    options_type: ClassVar[type[Options]] = ClaudeCodeOptions
    many_calls: ClassVar[bool] = True
    takes_turns: ClassVar[bool] = True
    takes_skills: ClassVar[bool] = True
    limits_tools: ClassVar[bool] = True
    options: ClaudeCodeOptions
    _home: Path | None = None  # until it is opened

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        known = _sdk_settings()
        for name in sorted(set(options.sdk) - known) if known else ():
            yield f"the SDK of Claude Code has no setting `{name}`, or it is one of the other options"
        environment = {**os.environ, **given_variables(options.env)}
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
        self._version = await version_of(program)

    async def close(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def model_hosts(self) -> list[str]:
        environment = {**os.environ, **given_variables(self.options.env)}
        return [self.spec.base_url or environment.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"]

    def variables(self) -> list[str]:
        return sorted({*ways_in(_WAYS_IN), *super().variables()})

    def versions(self) -> dict[str, str]:
        return {"Claude Code": self._version, "claude-agent-sdk": version("claude-agent-sdk")}

    async def ask(self, request: Request) -> Answer | Failure:
        if request.session is None:
            assert self._home is not None
            with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as folder:
                return await self._ask_in(Path(folder), request, self._messages(request))
        found = await asyncio.to_thread(_kept_session, request.session)
        if found is None:
            message = "the session of the earlier turns is not on this machine any more: run the suite again"
            return Failure(kind="session", message=message)
        place, before = found
        log = self._messages(request, before)
        answer = await self._ask_in(place, request, log)
        if isinstance(answer, Answer) and answer.trace and answer.trace.get("session_id"):
            await asyncio.to_thread(_keep_session, str(answer.trace["session_id"]), place, log.totals)
        return answer

    def _messages(self, request: Request, before: SessionTotals | None = None) -> ClaudeMessages:
        record = Record([server.name for server in request.mcp])
        return ClaudeMessages(record, {"turns": self.options.max_turns, "money": self._most_usd(request)}, before)

    async def _ask_in(self, folder: Path, request: Request, log: ClaudeMessages) -> Answer | Failure:
        """Let the agent work, with its settings and sessions in a folder."""
        from claude_agent_sdk import ClaudeSDKError, query

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

        options = self.options
        work = self.working_folder(request, folder)
        _move_project(folder / "config", work)
        skills = _install_skills(folder / "config" / "skills", request)
        environment = self._environment(request, folder)
        # Use files, because every user of the machine can read command lines.
        configs = server_configs(request.mcp, None, environment, request.workspace)
        configs |= options.sdk.get("mcp_servers") or {}
        (folder / "mcp.json").write_bytes(msgspec.json.encode({"mcpServers": configs}))
        (folder / "system.txt").write_text(request.system, "utf-8")
        settings: dict[str, Any] = {
            "tools": [*options.tools, *(["Skill"] if skills else [])],
            "allowed_tools": [*options.tools, *(f"mcp__{name}" for name in configs)],
            "disallowed_tools": [name for server in request.mcp for name in _withheld(server)],
            "permission_mode": "dontAsk",
            **({"skills": skills} if skills else {}),
            "system_prompt": {"type": "file", "path": str(folder / "system.txt")} if request.system else None,
            **{name: value for name, value in options.sdk.items() if name != "mcp_servers"},
            **({"resume": request.session, "fork_session": True} if request.session else {}),
        }
        return ClaudeAgentOptions(
            **settings,
            mcp_servers=str(folder / "mcp.json"),
            strict_mcp_config=True,
            # Skills are found in the folder of the user's settings: here a folder of the trial's own.
            setting_sources=list(dict.fromkeys((*(("user",) if skills else ()), *options.setting_sources))),
            verbatim_prompts=True,  # a case may contain `@/etc/passwd` or `/cost`: that is text, not a command
            max_buffer_size=_MAX_MESSAGE,
            model=self.spec.model or options.model,
            effort=options.effort,
            max_turns=options.max_turns,
            max_budget_usd=self._most_usd(request),
            cwd=str(work),
            cli_path=str(self._enclosed(request, folder, environment)),
            env=_kept(environment),
            stderr=lambda line: errors.append(line) if len(errors) < 200 else None,
        )

    def _most_usd(self, request: Request) -> float | None:
        """Return what a session may cost: by the suite, and by what is reserved for it."""
        limits = [self.options.max_budget_usd, request.allowance.usd if request.allowance else None]
        return min((limit for limit in limits if limit is not None), default=None)

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
            **given_variables(self.options.env),
        }
        return {**clean_environment(_WAYS_IN), **agent_variables}


def _withheld(server: McpServer) -> list[str]:
    """Return the tools of a server that the condition does not give."""
    return [f"mcp__{server.name}__{tool}" for tool in server.tools if not server.offers(tool)]


def _install_skills(place: Path, request: Request) -> list[str]:
    """Put the skills of the condition where the agent looks for them; return their names."""
    for archive in request.skills:
        place.mkdir(parents=True, exist_ok=True)
        unpack(archive.body, place)
    return sorted(folder.name for folder in place.iterdir()) if request.skills else []


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


def _kept_session(session: str) -> tuple[Path, SessionTotals] | None:
    """Return the folder in which a session was held and what it took, or a new one for the first turn; None if gone."""
    if not session:
        return Path(tempfile.mkdtemp(prefix="claude-", dir=_sessions())), SessionTotals()
    try:
        name, _, totals = (_sessions() / f"{Path(session).name}.session").read_text("utf-8").partition("\n")
    except OSError:
        return None
    folder = _sessions() / name
    if not folder.is_dir():
        return None
    return folder, msgspec.json.decode(totals, type=SessionTotals) if totals else SessionTotals()


def _keep_session(session: str, folder: Path, totals: SessionTotals | None) -> None:
    """Note in which folder a session was held, and what it took so far."""
    known = msgspec.json.encode(totals).decode() if totals else ""
    (_sessions() / f"{session}.session").write_text(f"{folder.name}\n{known}", "utf-8")
    os.utime(folder)


def _forget_old_sessions() -> None:
    """Remove the sessions that have not been continued for a while."""
    for path in _sessions().iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sessions() -> Path:
    """Return the folder of the sessions that conversations go on with, which only this user can read."""
    place = cache_folder() / "sessions"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place
