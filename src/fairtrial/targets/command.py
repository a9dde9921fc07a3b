"""`command`: a program that reads the prompt and writes the answer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.code import hash_files
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.reported import as_answer
from fairtrial.core.target import Options, Target
from fairtrial.toolbox.supervised import private_temp_folder, supervised, supervised_config

_MAX_OUTPUT = 16 * 2**20
_MAX_SHOWN = 8000


class CommandOptions(Options, frozen=True, kw_only=True):
    """`command` is the program with its arguments, `prompt` how it gets the prompt, `output` the answer's format."""

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    prompt: Literal["stdin", "argument"] = "stdin"
    output: Literal["text", "json"] = "text"
    env: dict[str, str] = {}


class Command(Target):
    """A program that is started once per trial in the suite's folder; FAIRTRIAL_SYSTEM_PROMPT has the system prompt.

    If the condition has MCP servers, FAIRTRIAL_MCP_CONFIG is the path of a JSON file with them, in the format of
    desktop clients.
    """

    runs_own_code: ClassVar[bool] = True
    options_type: ClassVar[type[Options]] = CommandOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
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

    async def ask(self, request: Request) -> Answer | Failure:
        with _mcp_config(request) as config:
            return await self._run(request, config)

    async def _run(self, request: Request, config: dict[str, str]) -> Answer | Failure:
        started = time.perf_counter()
        try:
            process = await self._start(request, config)
        except OSError as error:
            return Failure(kind="crashed", message=f"{self._options.command[0]} cannot be started: {error.strerror}")
        errors = _Tail(process.stderr)
        request.journal.read = lambda: SoFar(doing=errors.shown())
        try:
            stdin = request.input.encode() if self._options.prompt == "stdin" else b""
            output, _, _ = await asyncio.gather(
                _read_bounded(process, _MAX_OUTPUT), errors.read(), _feed(process.stdin, stdin)
            )
            if output is not None:
                await process.wait()
        finally:
            await _end(process)
        latency = (time.perf_counter() - started) * 1000
        if output is None:
            return Failure(kind="malformed", message=f"the command wrote more than {_MAX_OUTPUT >> 20} MB")
        if process.returncode:
            stderr = errors.text()
            return Failure(kind="crashed", message=f"the command exited with {process.returncode}: {stderr}")
        return self._read(request, output, latency)

    async def _start(self, request: Request, config: dict[str, str]) -> asyncio.subprocess.Process:
        program, *arguments = self._options.command
        in_folder = self.folder / program
        if self._options.prompt == "argument":
            arguments.append(request.input)
        environment = {
            **os.environ,
            **self._options.env,
            "FAIRTRIAL_SYSTEM_PROMPT": request.system,
            "FAIRTRIAL_CASE_ID": request.case_id,
            "FAIRTRIAL_PARAMS": json.dumps(self.sent(request)),
            **config,
        }
        return await asyncio.create_subprocess_exec(
            *supervised(str(in_folder.resolve()) if in_folder.is_file() else program, *arguments),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self.folder,
            env=environment,
            start_new_session=True,  # so that its children can be stopped with it
        )

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


async def _feed(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    assert stream is not None
    with suppress(ConnectionError):  # a program need not read its input
        stream.write(text)
        await stream.drain()
    stream.close()


async def _read_bounded(process: asyncio.subprocess.Process, limit: int) -> bytes | None:
    """Read a program's whole output; if it exceeds the limit, kill the program and return None."""
    assert process.stdout is not None
    blocks, size = [], 0
    while block := await process.stdout.read(2**16):
        size += len(block)
        if size > limit:
            _kill(process)
            return None
        blocks.append(block)
    return b"".join(blocks)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an argument that is far too long for a name
        return False


class _Tail:
    """The last lines of a stream, kept whole: part of a line might be part of a secret that should be hidden."""

    def __init__(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        self._stream, self._tail = stream, b""

    async def read(self) -> None:
        """Read the stream to its end."""
        while block := await self._stream.read(2**16):
            self._tail += block
            if len(self._tail) > _MAX_SHOWN:
                self._tail = self._tail[-_MAX_SHOWN:].partition(b"\n")[2]

    def text(self) -> str:
        """Return the last lines."""
        return self._tail.decode("utf-8", "replace").strip()

    def shown(self) -> str:
        """Return what a program that timed out has written until then."""
        text = self._tail.rpartition(b"\n")[0].decode("utf-8", "replace").strip()
        return f"until then it wrote: {text}" if text else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a program and all its children, including those that outlive it."""
    _kill(process)
    await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
