"""Agents that are programs: one process per trial, with a home of its own, that tells what it does line by line.

An agent's file says three things: `prepare`, how it is started; `take`, what one of its events means; and `conclude`,
what the session came to. Everything else is here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.agents.notes import ServerNotes
from fairtrial.agents.processes.process import Ended, Tail, end, feed, lines, start
from fairtrial.agents.processes.supervised import private_temp_folder
from fairtrial.agents.record import Record
from fairtrial.agents.session import AgentSession, Launch
from fairtrial.agents.surroundings import Env, clean_environment, given_variables, server_configs
from fairtrial.agents.workspace.servers import files_of_servers
from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.time_limit import time_limit
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.providers.errors import Filtered, error_of_status

_MAX_EVENT = 64 * 2**20  # bytes
_VERSION_SECONDS = 60.0
_MAX_SHOWN = 1500  # characters of what a program wrote


class AgentOptions(Options, frozen=True, kw_only=True):
    """Its built-in `tools` are off unless they are listed here, and `settings` are further settings of the agent.

    `max_turns` is how often its model is asked; if it calls tools in the last of these turns, there is no answer.
    `program` is another installation of it. It works in the trial's workspace, or in `cwd`, a folder relative to the
    suite that all trials share.
    """

    model: str | None = None
    program: str | None = None
    tools: list[str] = []
    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = 30
    settings: dict[str, Any] = {}
    env: Env = {}
    cwd: str | None = None


class CodingAgent(Target):
    """An agent that works in a workspace of each trial, or in `cwd`, a folder that all trials share.

    Its options have `cwd` and `env`.
    """

    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True  # what a session costs is only known when it has ended
    uses_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: Any, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self.options = options

    def workspace_of(self, spec: WorkspaceSpec | None) -> WorkspaceSpec | None:
        """Return an empty workspace if the suite says nothing about it, and none if all trials share a folder."""
        return None if self.options.cwd else spec or WorkspaceSpec()

    @classmethod
    def workspace_problem(cls, spec: TargetSpec, workspace: WorkspaceSpec) -> str:
        if spec.options.get("cwd"):
            return f"{spec.id} has a `cwd` that all trials share, and a `workspace` for each: keep one of them"
        return ""

    def sent(self, request: Request) -> dict[str, Any]:
        """Return nothing: agents choose their parameters themselves."""
        return {}

    def variables(self) -> list[str]:
        return sorted(given_variables(self.options.env))

    def working_folder(self, request: Request, home: Path) -> Path:
        """Return where the agent works; without a workspace, in a folder next to what it is given."""
        if self.options.cwd:
            return Path(self.folder, self.options.cwd).resolve()
        folder = request.workspace.folder if request.workspace else home / "work"
        folder.mkdir(exist_ok=True)
        return folder


class AgentProgram(CodingAgent):
    """An agent that is started once per trial."""

    title: ClassVar[str]  # its name for people
    command: ClassVar[str]  # its program
    package: ClassVar[str]  # of npm
    key_variable: ClassVar[str]  # where it looks for the key of its model
    model_host: ClassVar[str]  # where its model is, unless it is told another address

    options_type: ClassVar[type[Options]] = AgentOptions
    own_system: ClassVar[bool] = True
    options: AgentOptions

    _home: Path | None = None  # until it is opened
    _program: str = ""
    _version: str = "unknown"

    # What an agent's own file says.

    def prepare(self, session: AgentSession) -> Launch:
        """Write what the agent reads in its home, and return how it is started."""
        raise NotImplementedError

    def take(self, event: dict[str, Any], session: AgentSession) -> Answer | Failure | None:
        """Record one event; return what the session came to if there is no point in going on."""
        raise NotImplementedError

    def conclude(self, session: AgentSession, ended: Ended) -> Answer | Failure:
        """Return what a session that has ended came to."""
        raise NotImplementedError

    # What they share.

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        yield from cls.program_problems(options, folder)
        if not spec.api_key and not given_variables(options.env).get(cls.key_variable):
            yield f"{spec.id} has no credentials: set {cls.key_variable}"
        if not (spec.model or options.model):
            yield f"name the model: `{spec.provider}:MODEL`"

    @classmethod
    def program_problems(cls, options: Any, folder: Path) -> Iterable[str]:
        """Yield why its program cannot be started."""
        program = options.program or cls.command
        if find_program(program, folder) is None:
            advice = "" if options.program else f": install it (npm install -g {cls.package}), or name it in `program`"
            yield f"there is no program `{program}`{advice}"

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        return False  # it tells tokens, and the price list the rest

    @property
    def lane(self) -> str:
        return f"{self.spec.provider}:{self.spec.id}"

    @property
    def model(self) -> str:
        """The model that it uses."""
        return self.spec.model or self.options.model or ""

    async def open(self, concurrency: int) -> None:
        program = find_program(self.options.program or self.command, self.folder)
        if program is None:
            problem = next(iter(self.program_problems(self.options, self.folder)))
            raise TargetUnusableError(f"{self.spec.id}: {problem}")
        self._program, self._home = program, private_temp_folder(f"fairtrial-{self.command}")
        self._version = await version_of(program, self._home)

    async def close(self) -> None:
        if self._home is not None:
            await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

    def model_hosts(self) -> list[str]:
        return [self.spec.base_url or self.model_host]

    def versions(self) -> dict[str, str]:
        return {self.title: self._version}

    async def ask(self, request: Request) -> Answer | Failure:
        assert self._home is not None
        with tempfile.TemporaryDirectory(dir=self._home, ignore_cleanup_errors=True) as home:
            session = self._session(request, Path(home))
            request.journal.read = session.record.so_far
            launch = self.prepare(session)
            try:
                process = await self._start(session, launch)
            except OSError as error:
                return Failure(kind="crashed", message=f"{self._program} cannot be started: {error.strerror}")
            return await self._attend(session, process, launch.stdin)

    def _session(self, request: Request, home: Path) -> AgentSession:
        (home / "tmp").mkdir()
        notes = ServerNotes(home / "notes", request.mcp)
        own = {"HOME": str(home), "TMPDIR": str(home / "tmp"), **given_variables(self.options.env)}
        environment = {**clean_environment(), **own}
        return AgentSession(
            request=request,
            home=home,
            folder=self.working_folder(request, home),
            environment=environment,
            servers=server_configs(request.mcp, notes, environment, request.workspace),
            record=Record([server.name for server in request.mcp], notes),
        )

    async def _start(self, session: AgentSession, launch: Launch) -> Process:
        command = [self._program, *launch.arguments]
        environment = {**session.environment, **launch.environment, **given_variables(self.options.env)}
        workspace = session.request.workspace
        if workspace is None or workspace.spec.sandbox == "none":
            return await start(command, session.folder, environment)
        read = files_of_servers(session.request.mcp)
        enclosed = workspace.enclose(command, environment, read=read, write=[session.home.resolve()])
        return await start(enclosed.command, session.folder, enclosed.environment)

    async def _attend(self, session: AgentSession, process: Process, stdin: str) -> Answer | Failure:
        """Follow a session to its end, and leave nothing of it behind."""
        errors = Tail(process.stderr)
        try:
            stopped, _, _ = await asyncio.gather(
                self._listen(process, session), errors.read(), feed(process.stdin, stdin.encode())
            )
            await process.wait()
        finally:
            await end(process)
        if isinstance(stopped, Failure):
            return stopped
        return self._concluded(session, Ended(process.returncode or 0, "", errors.text()), stopped)

    async def _listen(self, process: Process, session: AgentSession) -> Answer | Failure | None:
        """Record the events of a session; end it at the first that makes going on pointless."""
        stopped: Answer | Failure | None = None
        try:
            async for line in lines(process.stdout, _MAX_EVENT):
                event = _event(line)
                stopped = self.take(event, session) if event else None
                if stopped is not None:
                    break
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # another version may tell other things
            stopped = session.record.failure("malformed", f"an event of {self.title} cannot be read: {error}")
        if stopped is not None and process.returncode is None:
            process.terminate()
        return stopped

    def _concluded(self, session: AgentSession, ended: Ended, stopped: Answer | None) -> Answer | Failure:
        record = session.record
        unconnected = record.unconnected()
        result = stopped or self.conclude(session, ended)
        if unconnected and (isinstance(result, Answer) or result.kind == "crashed"):
            reason = _shortened(ended.errors) if isinstance(result, Answer) else result.message
            message = f"the MCP server `{unconnected}` did not connect" + (f": {reason}" if reason else "")
            # A whole session without the server has been paid for: whether to repeat it is for people to decide.
            return record.failure("mcp", message, retryable=isinstance(result, Failure))
        confinement = session.request.workspace.confinement() if session.request.workspace else ""
        if isinstance(result, Failure) and result.kind == "crashed" and confinement:
            return msgspec.structs.replace(result, message=f"{result.message} ({confinement})")
        return result

    def turns_over(self, session: AgentSession) -> Answer | None:
        """Return what the agent came to if it has taken all its turns, and its tools have returned: it would go on."""
        limit = self.options.max_turns
        if limit is None or session.record.waits or session.record.rounds < limit:
            return None
        return self.out_of_turns(session)

    def out_of_turns(self, session: AgentSession) -> Answer:
        """Return what an agent came to that has taken all its turns, and note the limit."""
        session.record.stopped("turns", self.options.max_turns)
        return session.record.unfinished()

    def failed(self, session: AgentSession, message: str, status: int | None = None) -> Answer | Failure:
        """Return what a message of the agent, with the HTTP status of its model, stands for: a failure mostly.

        An agent that has filled the context of its model with what it read has reached a limit.
        """
        text = f"{self.title}: {_shortened(message)}"
        if status is None:
            return session.record.failure("crashed", text)
        meaning = error_of_status(status, message.encode())
        if isinstance(meaning, Filtered):
            return session.record.failure("refused", text)
        if meaning.kind == "context" and session.record.steps:
            session.record.stopped("tokens")
            return session.record.unfinished()
        return session.record.failure(meaning.kind, text, retryable=meaning.retryable)


def _shortened(text: str) -> str:
    """Return the end of what a program wrote, in one line, from the beginning of a word: see `core.trace.short`."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else line[-_MAX_SHOWN:].partition(" ")[2]


def _event(line: bytes) -> dict[str, Any] | None:
    """Read a line; programs also print lines that are not events."""
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return event if isinstance(event, dict) else None


def find_program(program: str, folder: Path) -> str | None:
    """Return the path of a program: by its name, or relative to the suite."""
    found = shutil.which(program)
    if found is None and os.sep in program:
        found = shutil.which(str(folder / program))
    return str(Path(found).absolute()) if found else None


async def version_of(program: str, home: Path | None = None) -> str:
    """Return the version of a program's npm package, or else the one that it prints: some take seconds to start."""
    return _packaged_version(program) or await _printed_version(program, home)


def _packaged_version(program: str) -> str:
    for folder in Path(program).resolve().parents:
        if folder.parent.name == "node_modules" or folder.parent.parent.name == "node_modules":
            try:
                return str(msgspec.json.decode((folder / "package.json").read_bytes())["version"])
            except (OSError, msgspec.DecodeError, LookupError, TypeError):
                continue
    return ""


async def _printed_version(program: str, home: Path | None) -> str:
    output = await output_of([program, "--version"], home)
    words = [word for word in output.decode("utf-8", "replace").split() if word[:1].isdigit()]
    return words[0] if words else "unknown"


async def output_of(command: list[str], home: Path | None) -> bytes:
    """Return what a program says about itself; nothing if it takes too long, as it may be asking something."""
    environment = {**clean_environment(), **({"HOME": str(home)} if home else {})}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment
    )
    try:
        async with time_limit(_VERSION_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
    return output
