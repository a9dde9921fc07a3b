"""Who may ask, and how much: only under a name of this server, only pages of ours may send, and nobody without end."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HARMLESS = ("GET", "HEAD")
MOST_SENT = 48 * 2**20  # a table of cases and the text of a suite, each as large as they may be, and some room


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


class Bounded:
    """Refuses what is too large: by what its sender says before anything is read, else once that much has come."""

    def __init__(self, app: ASGIApp, most: int = MOST_SENT) -> None:
        self._app, self._most = app, most
        self._refusal = f"That is more than {most >> 20} MB."

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = Headers(scope=scope).get("content-length", "0")
        if not said.isascii() or not said.isdigit() or int(said[:20]) > self._most:
            await PlainTextResponse(self._refusal, 413, headers={"connection": "close"})(scope, receive, send)
            return
        come = 0

        async def counted() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > self._most:
                raise HTTPException(413, self._refusal)
            return message

        await self._app(scope, counted, send)


def _is_number(host: str) -> bool:
    """Whether a host is an address in numbers."""
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True
