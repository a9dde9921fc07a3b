"""Who may ask: only this machine, by its own name, and only pages of ours may send anything."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HARMLESS = ("GET", "HEAD")


class Guard:
    """Refuses requests under a foreign name (DNS rebinding) and from foreign pages (forged requests)."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reason = self._reason(scope["method"], Headers(scope=scope))
            if reason:
                await PlainTextResponse(reason, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _reason(self, method: str, headers: Headers) -> str | None:
        if headers.get("host") not in self._hosts:
            return "This server answers only under its own address."
        origin = headers.get("origin")
        if method not in _HARMLESS and origin not in {f"http://{host}" for host in self._hosts}:
            return "This was sent by a page of somebody else."
        return None
