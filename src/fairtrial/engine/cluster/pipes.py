"""Requests to a process of ours over two pipes: many at a time, each answered when its work is done."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import NoReturn

from fairtrial.engine.cluster.link import WorkerLostError

_HEADER = struct.Struct("<QBQ")  # the number of the request, its method or how it ended, the length of the body
_DONE, _FAILED, _LOST = range(3)
_LIMIT = 2**26
_GRACE = 20.0  # seconds for a process without a driver to close what it has open


class Peer:
    """The process at the other end."""

    def __init__(self, serve: str, methods: tuple[str, ...], *, quiet: bool = False) -> None:
        """`serve`: the function, as `module:name`, that serves there; `quiet` hides what is printed there."""
        self.alive = True
        self._serve, self._methods, self._quiet = serve, methods, quiet
        self._process: asyncio.subprocess.Process | None = None
        self._numbers = count()
        self._replies: dict[int, asyncio.Future[bytes]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process."""
        module, _, name = self._serve.partition(":")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            f"from {module} import {name}; {name}()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL if self._quiet else None,
            limit=_LIMIT,
            start_new_session=True,  # Ctrl-C is for the driver, which ends what it has started
        )
        self._reading = asyncio.create_task(self._read())

    async def ask(self, method: str, body: bytes = b"") -> bytes:
        """Return the reply; raise WorkerLostError if there is none because the process has ended, or says so."""
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        pipe = self._send(method, body, reply)
        with suppress(ConnectionError):  # then the process has ended, which `_read` notices
            await pipe.drain()
        return await reply

    def tell(self, method: str, body: bytes = b"") -> None:
        """Say something, and let its reply go."""
        with suppress(WorkerLostError):
            reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            reply.cancel()
            self._send(method, body, reply)

    def _send(self, method: str, body: bytes, reply: asyncio.Future[bytes]) -> asyncio.StreamWriter:
        if not self.alive or self._process is None or self._process.stdin is None:
            raise WorkerLostError("its process has ended")
        number = next(self._numbers)
        self._replies[number] = reply
        self._process.stdin.write(_HEADER.pack(number, self._methods.index(method), len(body)) + body)
        return self._process.stdin

    def hang_up(self) -> None:
        """Have the process end by itself."""
        self.alive = False
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        try:
            while True:
                number, ending, length = _HEADER.unpack(await self._process.stdout.readexactly(_HEADER.size))
                body = await self._process.stdout.readexactly(length)
                _settle(self._replies.pop(number), ending, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.alive = False
            for reply in self._replies.values():
                _settle(reply, _LOST, b"its process ended")

    def kill(self) -> None:
        """End the process now."""
        self.alive = False
        if self._process is not None and self._process.returncode is None:
            # Not `Process.kill`, which takes the exit code from those who wait for it.
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Return when the process has ended."""
        if self._process is not None:
            await self._process.wait()
        if self._reading is not None:
            self._reading.cancel()


def _settle(reply: asyncio.Future[bytes], ending: int, body: bytes) -> None:
    if reply.done():
        return
    if ending == _DONE:
        reply.set_result(body)
    elif ending == _LOST:
        reply.set_exception(WorkerLostError(body.decode()))
    else:
        reply.set_exception(RuntimeError(f"a worker failed: {body.decode()}"))


# -- in the other process --------------------------------------------------------------------------


async def _nothing() -> None:
    pass


def _nobody() -> None:
    pass


def hung_up() -> bool:
    """Return whether the driver has closed the pipe, although what it wrote before may not have been read yet."""
    if not hasattr(select, "poll"):  # Windows
        return False
    watch = select.poll()
    watch.register(0, 0)  # for its end alone
    return bool(watch.poll(0))


def serve(
    methods: tuple[str, ...],
    call: Callable[[str, bytes], Awaitable[bytes]],
    close: Callable[[], Awaitable[object]] = _nothing,
    drop: Callable[[], None] = _nobody,
) -> None:
    """Answer requests until the driver closes the pipe, then drop all work, close what is open and end the process.

    In a process that was frozen and missed its driver's end, answers may have arrived, and what follows them would be
    paid for outside of every budget: `drop` comes as soon as the end is read, and until then `hung_up` tells.
    """
    replies = os.dup(1)
    os.dup2(2, 1)  # what the user's functions print is not for the driver
    asyncio.run(_serve(replies, methods, call, close, drop))


async def _serve(
    replies: int,
    methods: tuple[str, ...],
    call: Callable[[str, bytes], Awaitable[bytes]],
    close: Callable[[], Awaitable[object]],
    drop: Callable[[], None],
) -> NoReturn:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb"))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(replies, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    tasks = set()

    async def answer(number: int, method: str, body: bytes) -> None:
        ending = _DONE
        try:
            reply = await call(method, body)
        except WorkerLostError as error:
            ending, reply = _LOST, str(error).encode()
        except Exception as error:
            ending, reply = _FAILED, f"{type(error).__name__}: {error}".encode()
        with suppress(ConnectionError):
            writer.write(_HEADER.pack(number, ending, len(reply)) + reply)
            await writer.drain()

    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            number, method, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            task = asyncio.create_task(answer(number, methods[method], await reader.readexactly(length)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    drop()
    loop.set_exception_handler(lambda *_: None)  # nobody is left to tell
    for task in tasks:  # the driver is gone, and has no use for what it had asked for
        task.cancel()
    with suppress(Exception):
        async with asyncio.timeout(_GRACE):
            await asyncio.gather(*tasks, return_exceptions=True)
            await close()
    sys.stdout.flush()
    os._exit(0)  # whatever a thread waits for
