"""The token that everybody needs; whoever gave it once has a cookie that no script reads."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "fairtrial"
SHORTEST = 16
_DOOR = "/enter"
_STATIC = "/static/"
_LONGEST_FORM = 4096
_PENALTY = 0.5  # seconds that a wrong token costs


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


class Access:
    """Lets in whoever has the token, as a bearer or in the cookie that `/enter` gives.

    Args:
        key: What the cookie is made with; cookies hold as long as it stays. The token itself unless given.
        cookie: Its name. Browsers share cookies between the ports of a machine, so each server needs one of its own.
    """

    def __init__(self, app: ASGIApp, token: str, *, key: bytes | None = None, cookie: str = COOKIE) -> None:
        self._app, self._token, self._cookie = app, token.encode(), cookie
        self._pass = hmac.new(key or self._token, f"fairtrial cookie {cookie}".encode(), hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._choose(scope, receive))(scope, receive, send)

    async def _choose(self, scope: Scope, receive: Receive) -> ASGIApp:
        """Who answers: the door, the application, or a refusal."""
        if scope["type"] != "http":
            return self._app
        path, method = scope["path"], scope["method"]
        if path == _DOOR and method == "POST":
            return await self._enter(Request(scope, receive))
        if path == _DOOR or path.startswith(_STATIC) or self._known(scope):
            return self._app
        if method == "GET" and "text/html" in Headers(scope=scope).get("accept", ""):
            wanted = f"{path}?{query}" if (query := scope["query_string"].decode("latin-1")) else path
            return RedirectResponse(_door(next="" if wanted == "/" else wanted), 303)
        return PlainTextResponse("This server needs its token: open /enter and give it.", 401)

    def _known(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        cookie = Request(scope).cookies.get(self._cookie, "")
        by_bearer = hmac.compare_digest(bearer.encode(), self._token)
        by_cookie = hmac.compare_digest(cookie.encode(), self._pass.encode())
        return by_bearer or by_cookie

    async def _enter(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_FORM:
                return PlainTextResponse("That is no token.", 413)
        form = parse_qs(body.decode("utf-8", "replace"))
        given, wanted = form.get("token", [""])[0].strip(), form.get("next", [""])[0]
        if not hmac.compare_digest(given.encode(), self._token):
            await asyncio.sleep(_PENALTY)
            return RedirectResponse(_door(wrong="1", next=wanted), 303)
        reply = RedirectResponse(wanted if _is_ours(wanted) else "/", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict", secure=secure, max_age=30 * 86400)
        return reply


def link(address: str, token: str, path: str = "") -> str:
    """The address that lets its reader in; behind # a token stands in no log and is not sent along with it."""
    return f"{address.rstrip('/')}{_door(next=f'/{path}' if path else '')}#{token}"


def _door(**query: str) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{_DOOR}?{urlencode(given)}" if given else _DOOR


def _is_ours(path: str) -> bool:
    """Whether an address leads to a page of this server: `//host` and `/\\host` lead elsewhere."""
    return path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
