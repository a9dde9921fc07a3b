"""The servers: the application, and a second origin for pages written by models."""

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
_UVICORN_OPTIONS: dict[str, Any] = {
    "log_level": "critical",  # errors in pages are reported by `app.py`
    "access_log": False,
    "lifespan": "off",
    "server_header": False,
    "ws": "none",
    "timeout_graceful_shutdown": 1,
}
_HTTP_PORT = 80  # browsers omit it from the Host header
LOOPBACK = (HOST, "localhost", "::1")


class _PageServer(uvicorn.Server):
    """One of several servers in a process, which leaves signal handling to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind_socket(port: int = 0, host: str = HOST) -> socket.socket:
    """Return a listening socket; port 0 picks a free port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise FairtrialError(f"`{host}` is not an address of this machine: choose another with --host") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(128)  # clients that connect before the server starts wait for it
    except OSError as error:
        listener.close()
        if port and "in use" in str(error):
            raise FairtrialError(f"port {port} is in use: choose another with --port") from None
        raise FairtrialError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def host_names(listener: socket.socket, host: str = HOST) -> list[str]:
    """Return the Host header values that a server accepts."""
    port = listener.getsockname()[1]
    names = [*LOOPBACK, host, *([] if host in LOOPBACK else [socket.gethostname(), socket.getfqdn()])]
    shown = [f"[{name}]" if ":" in name else name for name in dict.fromkeys(names)]
    return [f"{name}:{port}" for name in shown] + (shown if port == _HTTP_PORT else [])


@asynccontextmanager
async def serve_site(
    store: Store, folder: Path, *, token: str, key: bytes | None = None, host: str = HOST, port: int = 0
) -> AsyncIterator[str]:
    """Serve the whole web interface, protected by the token, until the block is left; yield its address."""
    main, previews = bind_socket(port, host), bind_socket(0, host)
    site = Site(store, folder, preview_port=previews.getsockname()[1])
    access = Access(make_app(site), token, key=key, cookie=f"{COOKIE}-{main.getsockname()[1]}")
    remote = host not in LOOPBACK
    apps = (
        (Guard(access, host_names(main, host), ip_addresses=remote), main),
        (Guard(site.previews.app, host_names(previews, host), ip_addresses=remote), previews),
    )
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104  # compared, not bound
    try:
        async with serve_apps(*apps):
            warming = asyncio.create_task(asyncio.to_thread(site.warm_up))
            yield f"http://{f'[{shown}]' if ':' in shown else shown}:{main.getsockname()[1]}/"
            await asyncio.gather(warming, return_exceptions=True)
    finally:
        await asyncio.to_thread(site.close)


@asynccontextmanager
async def serve_apps(*apps: tuple[ASGIApp, socket.socket]) -> AsyncIterator[None]:
    """Serve every application on its socket until the block is left."""
    servers = [_PageServer(uvicorn.Config(app, **_UVICORN_OPTIONS)) for app, _ in apps]
    sockets = [listener for _, listener in apps]
    tasks = [
        asyncio.create_task(server.serve(sockets=[listener])) for server, listener in zip(servers, sockets, strict=True)
    ]
    try:
        yield
    finally:
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in sockets:
            listener.close()
