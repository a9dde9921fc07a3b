"""Access control: a token, exchanged once for a cookie that scripts cannot read."""

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
_ENTER = "/enter"
_STATIC = "/static/"
_MAX_FORM_BYTES = 4096
_PENALTY = 0.5  # seconds to wait after a wrong token


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(24)


class Access:
    """Middleware that requires the token as a bearer token, or the cookie that `/enter` sets.

    Args:
        key: Signs the cookie; cookies stay valid as long as it is unchanged. Defaults to the token itself.
        cookie: The cookie's name. Browsers share cookies between ports of a machine, so each server needs its own.
    """

    def __init__(self, app: ASGIApp, token: str, *, key: bytes | None = None, cookie: str = COOKIE) -> None:
        self._app, self._token, self._cookie = app, token.encode(), cookie
        self._cookie_value = hmac.new(
            key or self._token, f"fairtrial cookie {cookie}".encode(), hashlib.sha256
        ).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._responder(scope, receive))(scope, receive, send)

    async def _responder(self, scope: Scope, receive: Receive) -> ASGIApp:
        """Return what answers a request: the token check, the application, or a refusal."""
        if scope["type"] != "http":
            return self._app
        path, method = scope["path"], scope["method"]
        if path == _ENTER and method == "POST":
            return await self._enter(Request(scope, receive))
        if path == _ENTER or path.startswith(_STATIC) or self._is_authorised(scope):
            return self._app
        if method == "GET" and "text/html" in Headers(scope=scope).get("accept", ""):
            wanted = f"{path}?{query}" if (query := scope["query_string"].decode("latin-1")) else path
            return RedirectResponse(_enter_url(next="" if wanted == "/" else wanted), 303)
        return PlainTextResponse("This server requires a token: open /enter and type it in.", 401)

    def _is_authorised(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        cookie = Request(scope).cookies.get(self._cookie, "")
        by_bearer = hmac.compare_digest(bearer.encode(), self._token)
        by_cookie = hmac.compare_digest(cookie.encode(), self._cookie_value.encode())
        return by_bearer or by_cookie

    async def _enter(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_FORM_BYTES:
                return PlainTextResponse("That is not a token: it is too long.", 413)
        form = parse_qs(body.decode("utf-8", "replace"))
        token, wanted = form.get("token", [""])[0].strip(), form.get("next", [""])[0]
        if not hmac.compare_digest(token.encode(), self._token):
            await asyncio.sleep(_PENALTY)
            return RedirectResponse(_enter_url(wrong="1", next=wanted), 303)
        reply = RedirectResponse(wanted if _is_local(wanted) else "/", 303)
        secure = request.url.scheme == "https"
        reply.set_cookie(
            self._cookie, self._cookie_value, httponly=True, samesite="strict", secure=secure, max_age=30 * 86400
        )
        return reply


def link(address: str, token: str, path: str = "") -> str:
    """Return an address that signs its reader in; after # the token is neither logged nor sent to other servers."""
    return f"{address.rstrip('/')}{_enter_url(next=f'/{path}' if path else '')}#{token}"


def _enter_url(**query: str) -> str:
    params = {name: value for name, value in query.items() if value}
    return f"{_ENTER}?{urlencode(params)}" if params else _ENTER


def _is_local(path: str) -> bool:
    """Return whether a path leads to a page of this server: `//host` and `/\\host` lead elsewhere."""
    return path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable()
