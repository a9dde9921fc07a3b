"""Who may ask: only under a name of this server, and only pages of ours may send anything."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HARMLESS = ("GET", "HEAD")


class Guard:
    """Refuses requests under a foreign name (DNS rebinding) and from foreign pages (forged requests).

    Served to others than this machine, any address in numbers is ours too: no foreign name can stand for one.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, numbers: bool = False) -> None:
        self._app, self._hosts, self._numbers = app, frozenset(hosts), numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reason = self._reason(scope["method"], Headers(scope=scope))
            if reason:
                await PlainTextResponse(reason, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _reason(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if host not in self._hosts and not (self._numbers and _is_number(host)):
            return "This server answers only under its own address."
        origin = headers.get("origin")
        if method not in _HARMLESS and origin not in (f"http://{host}", f"https://{host}"):
            return "This was sent by a page of somebody else."
        return None


def _is_number(host: str) -> bool:
    """Whether a host is an address in numbers."""
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True
