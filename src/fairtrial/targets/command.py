"""`command`: a program that reads the prompt and writes the answer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.code import hash_files
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.reported import as_answer
from fairtrial.core.target import Options, Target
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.toolbox.process import Tail, end, feed, read_bounded, start
from fairtrial.toolbox.supervised import private_temp_folder, supervised_config
from fairtrial.workspace.sandbox import basic_environment
from fairtrial.workspace.servers import files_of_servers

_MAX_OUTPUT = 16 * 2**20
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
    """`command` is the program with its arguments, `prompt` how it gets the prompt, `output` the answer's format.

    It works in the trial's workspace, or in `cwd`, a folder relative to the suite that all trials share.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    prompt: Literal["stdin", "argument"] = "stdin"
    output: Literal["text", "json"] = "text"
    env: dict[str, str] = {}
    cwd: str | None = None


class Command(Target):
    """A program that is started once per trial, in a workspace of its own.

    FAIRTRIAL_SYSTEM_PROMPT has the system prompt. Files beside the suite that the command names are found there.

    If the condition has MCP servers, FAIRTRIAL_MCP_CONFIG is the path of a JSON file with them, in the format of
    desktop clients.
    """

    runs_own_code: ClassVar[bool] = True
    options_type: ClassVar[type[Options]] = CommandOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: CommandOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        program = options.command[0]
        if shutil.which(program) is None and shutil.which(str(folder / program)) is None:
            yield f"there is no program `{program}`"

    @classmethod
    def code(cls, spec: TargetSpec, options: Any, folder: Path) -> str:
        """Return a hash of the scripts in the command: what people edit, not the programs that are installed."""
        files = [folder / part for part in options.command if not Path(part).is_absolute()]
        return hash_files(file for file in files if _is_file(file))

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        return bool(options.output == "json")

    @property
    def lane(self) -> str:
        return f"command:{self.spec.id}"

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
        with _mcp_config(request) as config:
            return await self._run(request, config)

    async def _run(self, request: Request, config: dict[str, str]) -> Answer | Failure:
        started = time.perf_counter()
        try:
            process = await self._start(request, config)
        except OSError as error:
            return Failure(kind="crashed", message=f"{self._options.command[0]} cannot be started: {error.strerror}")
        errors = Tail(process.stderr)
        request.journal.read = lambda: SoFar(doing=errors.shown())
        try:
            stdin = request.input.encode() if self._options.prompt == "stdin" else b""
            output, _, _ = await asyncio.gather(
                read_bounded(process, _MAX_OUTPUT), errors.read(), feed(process.stdin, stdin)
            )
            if output is not None:
                await process.wait()
        finally:
            await end(process)
        latency = (time.perf_counter() - started) * 1000
        if output is None:
            return Failure(kind="malformed", message=f"the command wrote more than {_MAX_OUTPUT >> 20} MB")
        if process.returncode:
            message = f"the command exited with {process.returncode}: {errors.text()}"
            confinement = request.workspace.confinement() if request.workspace else ""
            return Failure(kind="crashed", message=f"{message} ({confinement})" if confinement else message)
        return self._read(request, output, latency)

    async def _start(self, request: Request, config: dict[str, str]) -> asyncio.subprocess.Process:
        command, scripts = self._command(request)
        workspace = request.workspace
        confined = workspace is not None and workspace.spec.sandbox != "none"
        environment = {
            **(basic_environment() if confined else os.environ),
            **self._options.env,
            "FAIRTRIAL_SYSTEM_PROMPT": request.system,
            "FAIRTRIAL_CASE_ID": request.case_id,
            "FAIRTRIAL_PARAMS": json.dumps(self.sent(request)),
            **config,
        }
        if workspace is None:
            return await start(command, self.folder / (self._options.cwd or "."), environment)
        environment["FAIRTRIAL_WORKSPACE"] = str(workspace.folder)
        read = [*scripts, *files_of_servers(request.mcp), *(Path(file).parent for file in config.values())]
        enclosed = workspace.enclose(command, environment, read=read)
        return await start(enclosed.command, workspace.folder, enclosed.environment)

    def _command(self, request: Request) -> tuple[list[str], list[Path]]:
        """Return the command line with the paths of files beside the suite, and these files."""
        parts = self._options.command if self._options.cwd is None else self._options.command[:1]
        # Links are not followed: a virtual environment's python is one, and finds its environment by its own path.
        paths = {part: (self.folder / part).absolute() for part in parts}
        scripts = {part: path for part, path in paths.items() if _is_file(path)}
        command = [str(scripts.get(part, part)) for part in self._options.command]
        return command + ([request.input] if self._options.prompt == "argument" else []), list(scripts.values())

    def _read(self, request: Request, output: bytes, latency_ms: float) -> Answer | Failure:
        if self._options.output == "text":
            return Answer(text=output.decode("utf-8", "replace").strip(), latency_ms=latency_ms)
        try:
            report = json.loads(output)  # it accepts NaN, which is rejected later as a cost
        except ValueError as error:
            return Failure(kind="malformed", message=f"the command's output is not valid JSON: {error}")
        if not isinstance(report, dict) or not isinstance(report.get("text"), str):
            message = "the command's output is not a JSON object with a string `text`"
            return Failure(kind="malformed", message=message)
        return as_answer(report, request.mcp, latency_ms)


@contextmanager
def _mcp_config(request: Request) -> Iterator[dict[str, str]]:
    """Write the servers to a file that only this user can read, and delete it when the program ends."""
    if not request.mcp:
        yield {}
        return
    servers = {server.name: supervised_config(server) for server in request.mcp}
    folder = private_temp_folder("fairtrial-mcp")
    try:
        file = folder / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
        yield {"FAIRTRIAL_MCP_CONFIG": str(file)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hosts(environment: dict[str, str]) -> list[str]:
    """Return where the models are that a program can use, by the addresses and keys that it is given."""
    addresses = [value for name, value in environment.items() if name.endswith(("_BASE_URL", "_API_BASE")) and value]
    return addresses or list(dict.fromkeys(host for name, host in _KEYS.items() if environment.get(name)))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument that is far too long for a name
        return False
