"""`command`: a program that reads the prompt and writes the answer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from fairtrial.agents.notes import ServerNotes
from fairtrial.agents.processes.process import Tail, end, exit_words, feed, read_bounded, run, start
from fairtrial.agents.processes.supervised import private_temp_folder, supervised_config
from fairtrial.agents.workspace.sandbox import basic_environment
from fairtrial.agents.workspace.servers import files_of_servers, moved_server
from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.templates import TemplateError, fill, names_in, template_problems
from fairtrial.core.trace import Trace, waiting_for
from fairtrial.core.user_functions import hash_files
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.targets._command_output import Output, Paths, TokenPaths, read_output

_MAX_OUTPUT = 16 * 2**20
_VERSION_SECONDS = 60.0
_VALUES = ("input", "system", "system_file", "mcp_file", "workspace", "home", "params", "vars", "case_id")
# Where models are whose key a program is given, for `network: model`.
_KEYS = {
    "ANTHROPIC_API_KEY": "https://api.anthropic.com",
    "ANTHROPIC_AUTH_TOKEN": "https://api.anthropic.com",
    "GEMINI_API_KEY": "https://generativelanguage.googleapis.com",
    "GOOGLE_API_KEY": "https://generativelanguage.googleapis.com",
    "OPENAI_API_KEY": "https://api.openai.com",
    "OPENROUTER_API_KEY": "https://openrouter.ai",
}


class CommandOptions(Options, frozen=True, kw_only=True):
    """`command` is the program with its arguments; `env` and `files` are what it finds around it.

    Their texts are templates with `input`, `system`, `system_file`, `mcp_file`, `workspace`, `home` (where the files
    are), `params`, `vars` and `case_id`. `prompt` says how it gets the prompt (default: on stdin, unless a template
    has it), `output` what it writes, to stdout or to `output_file`; `answer`, `tokens`, `cost`, `tool_calls` and
    `model` are paths into JSON. `version` is a command that prints the program's version.

    It works in the trial's workspace, or in `cwd`, a folder relative to the suite that all trials share.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    prompt: Literal["stdin", "argument", "none"] | None = None
    output: Output = "text"
    output_file: str = ""
    answer: str = ""
    tokens: TokenPaths = TokenPaths()
    cost: str = ""
    tool_calls: str = ""
    model: str = ""
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    version: list[str] = []
    cwd: str | None = None

    def paths(self) -> Paths:
        """Where the answer and the rest are in its output."""
        return Paths(
            answer=self.answer, tokens=self.tokens, cost=self.cost, tool_calls=self.tool_calls, model=self.model
        )

    def templates(self) -> list[str]:
        """Every text that is a template."""
        texts = (*self.command, *self.files.values(), *self.env.values(), self.output_file)
        return [text for text in texts if _is_template(text)]


class Command(Target):
    """A program that is started once per trial, in a workspace of its own.

    FAIRTRIAL_SYSTEM_PROMPT has the system prompt. Files next to the suite that the command names are found there.

    If the condition has MCP servers, FAIRTRIAL_MCP_CONFIG is the path of a JSON file with them, in the format of
    desktop clients. What reaches those that are programs is recorded, whatever the program itself tells.
    """

    runs_own_code: ClassVar[bool] = True
    options_type: ClassVar[type[Options]] = CommandOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    agent: ClassVar[bool] = True
    _version = "unknown"

    def __init__(self, spec: TargetSpec, options: CommandOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        program = options.command[0]
        if shutil.which(program) is None and shutil.which(str(folder / program)) is None:
            yield f"there is no program `{program}`"
        yield from options.paths().problems(options.output)
        for text in options.templates():
            yield from template_problems(text, _VALUES, "to a command")

    @classmethod
    def code(cls, spec: TargetSpec, options: Any, folder: Path) -> str:
        """Return a hash of the scripts in the command: what users edit, not the programs that are installed."""
        files = [folder / part for part in options.command if not Path(part).is_absolute()]
        return hash_files(file for file in files if _is_file(file))

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        return bool(options.cost or (options.output == "json" and not options.answer))

    @property
    def lane(self) -> str:
        return f"command:{self.spec.id}"

    async def open(self, concurrency: int) -> None:
        if self._options.version:
            with suppress(TimeoutError):
                ended = await run(self._options.version, self.folder, os.environ, _VERSION_SECONDS)
                self._version = (ended.output or ended.errors).partition("\n")[0][:200] or "unknown"

    def versions(self) -> dict[str, str]:
        return {self.spec.id: self._version} if self._options.version else {}

    def sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters set explicitly, passed in FAIRTRIAL_PARAMS; a program has its own defaults."""
        return {name: value for name, value in request.params.items() if name not in request.defaulted}

    def workspace_of(self, spec: WorkspaceSpec | None) -> WorkspaceSpec | None:
        """Return an empty workspace if the suite says nothing about it, and none if all trials share a folder."""
        return None if self._options.cwd is not None else spec or WorkspaceSpec()

    @classmethod
    def workspace_problem(cls, spec: TargetSpec, workspace: WorkspaceSpec) -> str:
        if spec.options.get("cwd") is not None:
            return f"{spec.id} has a `cwd` that all trials share, and a `workspace` for each: keep one of them"
        if workspace.sandbox != "none" and workspace.network == "model" and not _hosts(spec.options.get("env") or {}):
            return (
                f"{spec.id}: nothing in its `env` says where its model is (such as OPENAI_API_KEY or OPENAI_BASE_URL): "
                "name the hosts instead, `network: [api.example.com]`"
            )
        return ""

    def model_hosts(self) -> Sequence[str]:
        return _hosts(self._options.env)

    async def ask(self, request: Request) -> Answer | Failure:
        home = private_temp_folder("fairtrial-command")
        try:
            notes = ServerNotes(home / "notes", request.mcp)
            launch = self._launch(request, home, notes)
            result = await self._run(request, launch, notes)
        except TemplateError as error:
            return Failure(kind="template", message=str(error))
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return result

    async def _run(self, request: Request, launch: _Launch, notes: ServerNotes) -> Answer | Failure:
        started = time.perf_counter()
        try:
            process = await self._start(request, launch)
        except OSError as error:
            return Failure(kind="crashed", message=f"{self._options.command[0]} cannot be started: {error.strerror}")
        errors = Tail(process.stderr)
        request.journal.read = lambda: _so_far(errors, notes)
        try:
            stdin = request.input.encode() if self._prompt == "stdin" else b""
            output, _, _ = await asyncio.gather(
                read_bounded(process, _MAX_OUTPUT), errors.read(), feed(process.stdin, stdin)
            )
            if output is not None:
                await process.wait()
        finally:
            await end(process)
        latency = (time.perf_counter() - started) * 1000
        result = await self._result(request, launch, output, process.returncode or 0, errors.text(), latency)
        return _with_calls(result, notes)

    async def _result(
        self, request: Request, launch: _Launch, output: bytes | None, code: int, errors: str, latency: float
    ) -> Answer | Failure:
        if output is None:
            return Failure(kind="malformed", message=f"the command wrote more than {_MAX_OUTPUT >> 20} MB")
        if code:
            message = f"the command {exit_words(code)}{f': {errors}' if errors else ''}"
            confinement = request.workspace.confinement() if request.workspace else ""
            return Failure(kind="crashed", message=f"{message} ({confinement})" if confinement else message)
        if launch.output_file is not None:
            try:
                output = await asyncio.to_thread(_read_file, launch.output_file)
            except OSError as error:
                name = self._options.output_file
                return Failure(kind="malformed", message=f"the command's `{name}` cannot be read: {error.strerror}")
        return read_output(output, self._options.output, self._options.paths(), request.mcp, latency)

    @property
    def _prompt(self) -> str:
        """How the program gets the prompt."""
        if self._options.prompt is not None:
            return self._options.prompt
        return "none" if any("input" in names_in(text) for text in self._options.templates()) else "stdin"

    def _launch(self, request: Request, home: Path, notes: ServerNotes) -> _Launch:
        """Write the files that the program finds, and fill in what it is started with."""
        workspace = request.workspace
        folder = workspace.folder if workspace else (self.folder / (self._options.cwd or ".")).resolve()
        servers = {
            server.name: supervised_config(moved_server(server, workspace), notes.file(server.name))
            for server in request.mcp
        }
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        (home / "system.txt").write_text(request.system, "utf-8")
        values = {
            "input": request.input,
            "system": request.system,
            "system_file": str(home / "system.txt"),
            "mcp_file": str(home / "mcp.json"),
            "workspace": str(folder),
            "home": str(home),
            "params": self.sent(request),
            "vars": request.vars,
            "case_id": request.case_id,
        }
        for name, text in self._options.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(text, values), "utf-8")
        command, scripts = self._command(request, values)
        environment = {
            **{name: _filled(text, values) for name, text in self._options.env.items()},
            "FAIRTRIAL_SYSTEM_PROMPT": request.system,
            "FAIRTRIAL_CASE_ID": request.case_id,
            "FAIRTRIAL_PARAMS": json.dumps(self.sent(request)),
            **({"FAIRTRIAL_MCP_CONFIG": str(home / "mcp.json")} if request.mcp else {}),
        }
        wanted = self._options.output_file
        return _Launch(
            command, scripts, environment, folder, home, folder / _filled(wanted, values) if wanted else None
        )

    async def _start(self, request: Request, launch: _Launch) -> asyncio.subprocess.Process:
        workspace = request.workspace
        confined = workspace is not None and workspace.spec.sandbox != "none"
        environment = {**(basic_environment() if confined else os.environ), **launch.environment}
        if workspace is None:
            return await start(launch.command, launch.folder, environment)
        environment["FAIRTRIAL_WORKSPACE"] = str(workspace.folder)
        read = [*launch.scripts, *files_of_servers(request.mcp)]
        enclosed = workspace.enclose(launch.command, environment, read=read, write=[launch.home.resolve()])
        return await start(enclosed.command, workspace.folder, enclosed.environment)

    def _command(self, request: Request, values: dict[str, Any]) -> tuple[list[str], list[Path]]:
        """Return the command line with the paths of files next to the suite, and these files."""
        parts = self._options.command if self._options.cwd is None else self._options.command[:1]
        # Links are not followed: a virtual environment's python is one, and finds its environment by its own path.
        paths = {part: (self.folder / part).absolute() for part in parts}
        scripts = {part: path for part, path in paths.items() if _is_file(path)}
        command = [str(scripts[part]) if part in scripts else _filled(part, values) for part in self._options.command]
        return command + ([request.input] if self._prompt == "argument" else []), list(scripts.values())


class _Launch(NamedTuple):
    """How the program of one trial is started."""

    command: list[str]
    scripts: list[Path]
    environment: dict[str, str]
    folder: Path
    home: Path  # the folder with what was written for it
    output_file: Path | None


def _so_far(errors: Tail, notes: ServerNotes) -> SoFar:
    """Return what is known about a program that has not ended."""
    calls = notes.calls()
    if calls is None:
        return SoFar(doing=errors.shown())
    trace = Trace(tool_calls=calls).as_dict()
    waiting = waiting_for(calls) if any(call.unfinished for call in calls) else ""
    return SoFar(doing="; ".join(filter(None, (waiting, errors.shown()))), trace=trace)


def _with_calls(result: Answer | Failure, notes: ServerNotes) -> Answer | Failure:
    """Add the calls that reached MCP servers, unless the program's report has tool calls."""
    calls = notes.calls()
    if calls is None or "tool_calls" in (result.trace or {}):
        return result
    own = msgspec.to_builtins(list(calls))
    return msgspec.structs.replace(result, trace={**(result.trace or {}), "tool_calls": own})


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_OUTPUT)


def _is_template(text: str) -> bool:
    """Return whether values are to be filled into a text; `{#` and `{%` alone are for shells, awk and others."""
    return "{{" in text


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return fill(text, values) if _is_template(text) else text


def _hosts(environment: dict[str, str]) -> list[str]:
    """Return where the models are that a program can use, by the addresses and keys that it is given."""
    addresses = [value for name, value in environment.items() if name.endswith(("_BASE_URL", "_API_BASE")) and value]
    return addresses or list(dict.fromkeys(host for name, host in _KEYS.items() if environment.get(name)))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument that is far too long for a name
        return False
