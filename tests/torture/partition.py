"""What is between a program and its database, and can be cut: connections then stay open, and nothing comes through."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


class Partition:
    """A port on loopback that leads to a server, until `cut` and from `heal` on."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._whole = asyncio.Event()
        self._whole.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0  # seconds that everything takes to come through, in either direction
        self.waiting = 0  # programs that tried to connect since the cut

    async def __aenter__(self) -> Partition:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        self._hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The server's address on this side."""
        port = self._server.sockets[0].getsockname()[1]
        user = self._url.netloc.rpartition("@")[0]
        return urlunsplit(self._url._replace(netloc=f"{user}@127.0.0.1:{port}"))

    def cut(self) -> None:
        self._whole.clear()

    def heal(self, url: str = "") -> None:
        """Let new connections through, to another server if one is given; those from before the cut are over."""
        self._hang_up()
        self._url = urlsplit(url) if url else self._url
        self._whole.set()

    def _hang_up(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        self.waiting += not self._whole.is_set()
        await self._whole.wait()
        with suppress(OSError, asyncio.CancelledError):
            there = await asyncio.open_connection(self._url.hostname, self._url.port)
            self._writers.add(there[1])
            await asyncio.gather(self._pass_on(reader, there[1]), self._pass_on(there[0], writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                await self._whole.wait()
                await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        if self._whole.is_set():  # nobody hears of an end on the other side of the cut
            writer.close()
