"""Request checks: the Host header, the origin of submitted data, and the size of the body."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAFE_METHODS = ("GET", "HEAD")
MAX_BODY_BYTES = 48 * 2**20  # a table of cases and a suite's text, each at its largest, plus some room


class Guard:
    """Refuses requests with a foreign Host header (DNS rebinding) and from foreign pages (request forgery).

    When other machines are served too, any IP address is accepted as well: no foreign host name can be one.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, ip_addresses: bool = False) -> None:
        self._app, self._hosts, self._ip_addresses = app, frozenset(hosts), ip_addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reason = self._refusal(scope["method"], Headers(scope=scope))
            if reason:
                await PlainTextResponse(reason, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if host not in self._hosts and not (self._ip_addresses and _is_ip_address(host)):
            return "This server answers only under its own address."
        origin = headers.get("origin")
        if method not in _SAFE_METHODS and origin not in (f"http://{host}", f"https://{host}"):
            return "This request was sent from another site's page; open fairtrial itself and try again."
        return None


class BodyLimit:
    """Refuses bodies that are too large: by the declared length before reading, else once the limit is exceeded."""

    def __init__(self, app: ASGIApp, limit: int = MAX_BODY_BYTES) -> None:
        self._app, self._limit = app, limit
        self._refusal = f"The request is larger than {limit >> 20} MB."

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isascii() or not declared.isdigit() or int(declared[:20]) > self._limit:
            await PlainTextResponse(self._refusal, 413, headers={"connection": "close"})(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise HTTPException(413, self._refusal)
            return message

        await self._app(scope, counted, send)


def _is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True
