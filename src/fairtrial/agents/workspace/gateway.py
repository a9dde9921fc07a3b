"""The outer end of a sandbox's way out: a proxy on a unix socket that connects to allowed addresses only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

_MAX_HEAD = 2**16
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A host and a port that programs in a sandbox may connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return self.host in ("127.0.0.1", "localhost", "::1")


def address_of(text: str) -> Address:
    """Read `https://host/path`, `host:port` or `host`; raise ValueError for anything else."""
    parts = urlsplit(text if "://" in text else f"//{text}")
    if not parts.hostname:
        raise ValueError(f"`{text}` is not the address of a host")
    return Address(parts.hostname, parts.port or _PORTS.get(parts.scheme, 443))


@asynccontextmanager
async def gateway(socket: Path, allowed: Collection[Address]) -> AsyncIterator[None]:
    """Serve a socket as a proxy to these addresses."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                await _serve(reader, writer, allowed)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(serve, str(socket), limit=_MAX_HEAD)
    # A sandbox may have a user of its own; nobody else can enter the folder.
    os.chmod(socket, 0o666)  # noqa: PTH101, S103
    try:
        yield
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, allowed: Collection[Address]) -> None:
    """Serve one connection: `CONNECT host:port`, or a request with a whole address in its first line."""
    head = await reader.readuntil(b"\r\n\r\n")
    line, _, rest = head.partition(b"\r\n")
    method, _, remainder = line.decode("latin-1").partition(" ")
    where = remainder.partition(" ")[0]
    address = address_of(where)
    if address not in allowed:
        message = f"the sandbox does not let connections to {address} through"
        writer.write(f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(message)}\r\n\r\n{message}".encode())
        await writer.drain()
        return
    try:
        up_reader, up_writer = await asyncio.open_connection(*address)
    except OSError as error:
        writer.write(f"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nX-Reason: {error.strerror}\r\n\r\n".encode())
        await writer.drain()
        return
    if method == "CONNECT":
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    else:
        path = "/" + where.split("://", 1)[1].partition("/")[2]
        kept = [header for header in rest.split(b"\r\n") if not header.lower().startswith((b"connection:", b"proxy-"))]
        first = f"{method} {path} HTTP/1.1".encode("latin-1")
        up_writer.write(b"\r\n".join([first, b"Connection: close", *kept]))  # one request, for one address
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pipe(reader, up_writer))
            group.create_task(_pipe(up_reader, writer))
    finally:
        up_writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await reader.read(2**16):
            writer.write(block)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
