"""Servers: the application, and beside it an origin of its own for what models wrote."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.web.access import COOKIE, Access
from fairtrial.web.app import make_app
from fairtrial.web.guard import Guard
from fairtrial.web.site import Site

HOST = "127.0.0.1"
_HOW: dict[str, Any] = {
    "log_level": "critical",  # what breaks in a page is told by `app.py`
    "access_log": False,
    "lifespan": "off",
    "server_header": False,
    "ws": "none",
    "timeout_graceful_shutdown": 1,
}
_HTTP = 80  # browsers leave it out
LOOPBACK = (HOST, "localhost", "::1")


class _Server(uvicorn.Server):
    """One of several servers in a process: signals are not for it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bound(port: int = 0, host: str = HOST) -> socket.socket:
    """A socket; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise FairtrialError(f"`{host}` is no address of this machine: name another with --host") from None
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        made.listen(128)  # whoever comes before the server does waits for it
    except OSError as error:
        made.close()
        if port and "in use" in str(error):
            raise FairtrialError(f"port {port} is taken: name another with --port") from None
        raise FairtrialError(f"{host}:{port} cannot be served: {error.strerror}") from None
    return made


def names_of(bound_socket: socket.socket, host: str = HOST) -> list[str]:
    """The names under which a server may be asked."""
    port = bound_socket.getsockname()[1]
    names = [*LOOPBACK, host, *([] if host in LOOPBACK else [socket.gethostname(), socket.getfqdn()])]
    shown = [f"[{name}]" if ":" in name else name for name in dict.fromkeys(names)]
    return [f"{name}:{port}" for name in shown] + (shown if port == _HTTP else [])


@asynccontextmanager
async def opened(
    store: Store, folder: Path, *, token: str, key: bytes | None = None, host: str = HOST, port: int = 0
) -> AsyncIterator[str]:
    """The whole web page, served until the block is left to whoever has the token; its address."""
    main, other = bound(port, host), bound(0, host)
    site = Site(store, folder, preview_port=other.getsockname()[1])
    access = Access(make_app(site), token, key=key, cookie=f"{COOKIE}-{main.getsockname()[1]}")
    far = host not in LOOPBACK
    apps = (
        (Guard(access, names_of(main, host), numbers=far), main),
        (Guard(site.previews.app, names_of(other, host), numbers=far), other),
    )
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104  # compared, not bound
    try:
        async with served(*apps):
            warming = asyncio.create_task(asyncio.to_thread(site.warm_up))
            yield f"http://{f'[{shown}]' if ':' in shown else shown}:{main.getsockname()[1]}/"
            await asyncio.gather(warming, return_exceptions=True)
    finally:
        await asyncio.to_thread(site.close)


@asynccontextmanager
async def served(*apps: tuple[ASGIApp, socket.socket]) -> AsyncIterator[None]:
    """Serve every application on its socket until the block is left."""
    servers = [_Server(uvicorn.Config(app, **_HOW)) for app, _ in apps]
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
