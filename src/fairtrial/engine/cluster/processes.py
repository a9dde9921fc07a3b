"""Workers in processes of this machine, connected by pipes: for scorers that keep more than one processor busy."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
from contextlib import suppress
from itertools import count

from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Resources
from fairtrial.engine.cluster.link import WorkerLostError
from fairtrial.engine.cluster.messages import Briefing, decode, encode
from fairtrial.engine.cluster.worker import Worker

_HEADER = struct.Struct("<QBQ")  # the number of the request, its method or whether it failed, the length of the body
_METHODS = ("open", "deliver", "collect", "close")


class Processes:
    """Starts workers as processes of this machine."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._links: list[_ProcessLink] = []

    async def __aenter__(self) -> Processes:
        return self

    async def __aexit__(self, *_: object) -> None:
        for link in self._links:
            link.kill()
        await asyncio.gather(*(link.gone() for link in self._links))

    def encode(self, briefing: Briefing) -> bytes:
        try:
            return encode(briefing)
        except Exception as error:
            raise FairtrialError(
                f"the suite cannot be sent to other processes ({error}): give functions by an importable name"
            ) from None

    async def vacancies(self, share: Resources) -> int:
        return self.most - sum(link.alive for link in self._links)

    def start(self, share: Resources) -> _ProcessLink:
        link = _ProcessLink()
        self._links.append(link)
        return link


class _ProcessLink:
    """A worker process at the other end of two pipes."""

    def __init__(self) -> None:
        self.alive = True
        self._process: asyncio.subprocess.Process | None = None
        self._numbers = count()
        self._replies: dict[int, asyncio.Future[bytes]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def open(self, briefing: bytes) -> str | None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from fairtrial.engine.cluster.processes import serve; serve()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**26,
            start_new_session=True,  # Ctrl-C is for the driver, which ends its workers
        )
        self._reading = asyncio.create_task(self._read())
        problem: str | None = decode(await self._ask("open", briefing))
        return problem

    async def deliver(self, orders: bytes) -> None:
        await self._ask("deliver", orders)

    async def collect(self, linger: float) -> bytes:
        return await self._ask("collect", encode(linger))

    async def close(self) -> bytes:
        return await self._ask("close", b"")

    async def _ask(self, method: str, body: bytes) -> bytes:
        if not self.alive or self._process is None or self._process.stdin is None:
            raise WorkerLostError("its process has ended")
        number = next(self._numbers)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        with suppress(ConnectionError):  # then the process has ended, which `_read` notices
            self._process.stdin.write(_HEADER.pack(number, _METHODS.index(method), len(body)) + body)
            await self._process.stdin.drain()
        return await reply

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        try:
            while True:
                number, failed, length = _HEADER.unpack(await self._process.stdout.readexactly(_HEADER.size))
                body = await self._process.stdout.readexactly(length)
                reply = self._replies.pop(number)
                if failed and not reply.done():
                    reply.set_exception(RuntimeError(f"a worker failed: {body.decode()}"))
                elif not reply.done():
                    reply.set_result(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.alive = False
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(WorkerLostError("its process ended"))

    def kill(self) -> None:
        self.alive = False
        if self._process is not None and self._process.returncode is None:
            with suppress(
                ProcessLookupError
            ):  # not `Process.kill`, which takes the exit code from those who wait for it
                os.kill(self._process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        if self._process is not None:
            await self._process.wait()
        if self._reading is not None:
            self._reading.cancel()


# -- in the worker's process -----------------------------------------------------------------------


def serve() -> None:
    """Serve as a worker until the driver closes the pipe."""
    replies = os.dup(1)
    os.dup2(2, 1)  # what the user's functions print is not for the driver
    asyncio.run(_serve(replies))
    os._exit(0)


async def _serve(replies: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb"))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(replies, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    worker, tasks = Worker(), set()

    async def answer(number: int, method: str, body: bytes) -> None:
        failed = False
        try:
            reply = await _call(worker, method, body)
        except Exception as error:
            failed, reply = True, f"{type(error).__name__}: {error}".encode()
        writer.write(_HEADER.pack(number, failed, len(reply)) + reply)
        await writer.drain()

    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            number, method, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            task = asyncio.create_task(answer(number, _METHODS[method], await reader.readexactly(length)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def _call(worker: Worker, method: str, body: bytes) -> bytes:
    if method == "open":
        return encode(await worker.open(body))
    if method == "deliver":
        await worker.deliver(body)
        return b""
    return await (worker.close() if method == "close" else worker.collect(decode(body)))
