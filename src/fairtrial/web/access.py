"""A token for those who serve on more than this machine; whoever gave it once has a cookie that no script reads."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "fairtrial"
SHORTEST = 16
_OPEN = ("/enter", "/static/")
_LONGEST_FORM = 4096
_PENALTY = 0.5  # seconds that a wrong token costs


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


class Access:
    """Lets in whoever has the token, as a bearer or in the cookie that `/enter` gives."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()
        # What the cookie holds is not the token itself, and is good as long as the token is.
        self._pass = hmac.new(self._token, b"fairtrial cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_OPEN[1]) or self._known(scope):
            await self._app(scope, receive, send)
            return
        if scope["path"] == _OPEN[0]:
            if scope["method"] == "POST":
                await (await self._enter(Request(scope, receive)))(scope, receive, send)
            else:
                await self._app(scope, receive, send)
            return
        wants_page = scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
        refusal: Response = PlainTextResponse("This server needs its token: open /enter and give it.", 401)
        await (RedirectResponse("/enter", 303) if wants_page else refusal)(scope, receive, send)

    def _known(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        cookie = Request(scope).cookies.get(COOKIE, "")
        by_bearer = hmac.compare_digest(bearer.encode(), self._token)
        by_cookie = hmac.compare_digest(cookie.encode(), self._pass.encode())
        return by_bearer or by_cookie

    async def _enter(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_FORM:
                return PlainTextResponse("That is no token.", 413)
        given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not hmac.compare_digest(given.encode(), self._token):
            await asyncio.sleep(_PENALTY)
            return RedirectResponse("/enter?wrong=1", 303)
        reply = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(COOKIE, self._pass, httponly=True, samesite="strict", secure=secure, max_age=30 * 86400)
        return reply
