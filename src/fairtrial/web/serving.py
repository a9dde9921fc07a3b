"""Servers on this machine: an application, and beside it an origin of its own for what models wrote."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from fairtrial.core.errors import FairtrialError

HOST = "127.0.0.1"


class _Server(uvicorn.Server):
    """One of several servers in a process: signals are not for it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bound(port: int = 0) -> socket.socket:
    """A socket on this machine alone; port 0 takes a free one."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(128)  # whoever comes before the server does waits for it
    except OSError:
        made.close()
        raise FairtrialError(f"port {port} is taken: name another with --port") from None
    return made


def names_of(bound_socket: socket.socket) -> list[str]:
    """The names under which a server may be asked."""
    port = bound_socket.getsockname()[1]
    return [f"{HOST}:{port}", f"localhost:{port}"]


@asynccontextmanager
async def served(*apps: tuple[ASGIApp, socket.socket]) -> AsyncIterator[None]:
    """Serve every application on its socket until the block is left."""
    servers = [
        _Server(uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False)) for app, _ in apps
    ]
    sockets = [made for _, made in apps]
    tasks = [asyncio.create_task(server.serve(sockets=[made])) for server, made in zip(servers, sockets, strict=True)]
    try:
        yield
    finally:
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks, return_exceptions=True)
        for made in sockets:
            made.close()
