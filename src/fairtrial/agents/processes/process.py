"""Programs with limits: what they write is bounded, and they end with all their children."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairtrial.agents.processes.supervised import supervised
from fairtrial.core.time_limit import time_limit

_MAX_SHOWN = 8000
_KILLED = 128  # more than that is a signal
_PATIENCE = 10.0  # seconds for a supervisor to end a program, before both are killed


class Ended(NamedTuple):
    """How a program ended: its exit code, and the last lines that it wrote."""

    code: int
    output: str
    errors: str


async def start(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Process:
    """Start a program under the supervisor, so that it ends when fairtrial ends."""
    return await asyncio.create_subprocess_exec(
        *supervised(*command),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,  # so that its children can be stopped with it
    )


async def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float, stdin: bytes = b""
) -> Ended:
    """Run a program to its end; raise TimeoutError after this many seconds."""
    process = await start(command, folder, environment)
    output, errors = Tail(process.stdout), Tail(process.stderr)
    try:
        async with time_limit(seconds):
            await asyncio.gather(output.read(), errors.read(), feed(process.stdin, stdin))
            await process.wait()
    finally:
        await end(process)
    return Ended(process.returncode or 0, output.text(), errors.text())


async def feed(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    """Write a program's input and close it."""
    assert stream is not None
    with suppress(ConnectionError):  # a program need not read its input
        stream.write(text)
        await stream.drain()
    stream.close()


async def read_bounded(process: Process, limit: int) -> bytes | None:
    """Read a program's whole output; if it exceeds the limit, kill the program and return None."""
    assert process.stdout is not None
    blocks, size = [], 0
    while block := await process.stdout.read(2**16):
        size += len(block)
        if size > limit:
            kill(process)
            return None
        blocks.append(block)
    return b"".join(blocks)


async def lines(stream: asyncio.StreamReader | None, limit: int) -> AsyncIterator[bytes]:
    """Yield a stream's lines as they come; raise ValueError if one is longer than the limit."""
    assert stream is not None
    rest = bytearray()
    while block := await stream.read(2**16):
        rest += block
        if b"\n" in block:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in whole:
                yield line
        if len(rest) > limit:
            raise ValueError(f"a line is longer than {limit >> 20} MB")
    if rest:
        yield bytes(rest)


class Tail:
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


async def end(process: Process) -> None:
    """End a program and everything that it has started, also what has left its process group."""
    if process.returncode is None and sys.platform != "win32":
        with suppress(ProcessLookupError, TimeoutError):
            process.terminate()  # its supervisor kills everything
            process.send_signal(signal.SIGCONT)  # also one that was stopped
            async with time_limit(_PATIENCE):
                await process.wait()
    kill(process)
    with suppress(TimeoutError):  # what has got away from it may have its pipes, for whose end asyncio waits, too
        async with time_limit(_PATIENCE):
            await process.wait()
    process._transport.close()  # type: ignore[attr-defined]  # those pipes: asyncio has no other way


def exit_words(code: int) -> str:
    """Return how a program has ended that did not succeed."""
    number = code - _KILLED  # as its supervisor and shells tell it
    if number in set(signal.Signals):
        return f"was killed ({signal.Signals(number).name})"
    return f"exited with {code}"


def kill(process: Process) -> None:
    """Kill a program and everything in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
