"""Generated pages, served from their own origin, at addresses that work once and only inside our frame."""

from __future__ import annotations

import secrets
from collections import OrderedDict

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairtrial.webpage.seal import GUARDED_HEADERS, HOLDS_IN, guarded, holds_in

_MAX_WAITING = 200  # pages not fetched yet
_PLAIN = {key: value for key, value in GUARDED_HEADERS.items() if key != "Content-Type"}


class Previews:
    """Sealed pages waiting to be fetched, each once, at an unguessable path."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self.app = Starlette(routes=[Route("/{name:path}", self._serve, methods=["GET"])])

    def add(self, html: str) -> str:
        """Add a page and return the path at which it can be fetched once."""
        name = secrets.token_urlsafe(32)
        self._waiting[name] = html
        while len(self._waiting) > _MAX_WAITING:
            self._waiting.popitem(last=False)
        return f"/{name}"

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if reason := _refusal(request.headers):  # a refusal does not use the page up
            return PlainTextResponse(reason, 403, headers=_PLAIN)
        if request.method == "HEAD":  # nor does checking that it exists
            return Response(status_code=200 if name in self._waiting else 404, headers=GUARDED_HEADERS)
        html = self._waiting.pop(name, None)
        if html is None:
            return PlainTextResponse(
                "This page does not exist or was already shown: reload to see it again.", 404, headers=_PLAIN
            )
        return Response(guarded(html), headers=GUARDED_HEADERS)


def _refusal(headers: Headers) -> str:
    """Return why a page is not served; empty if it is.

    Over plain HTTP from another machine, browsers do not send `Sec-Fetch-Dest`: there the page itself checks that it
    is inside a frame, and does not run outside of one.
    """
    if headers.get("sec-fetch-dest", "iframe") != "iframe":
        return "This page is shown only inside fairtrial."
    if not holds_in(headers.get("user-agent", "")):
        return (
            f"This page is not shown live, because in this browser it might reach the network. "
            f"To see it live, open fairtrial in {HOLDS_IN}; its screenshots are shown in any browser."
        )
    return ""
