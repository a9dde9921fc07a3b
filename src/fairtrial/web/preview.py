"""Where generated pages are shown: an origin of their own, an address that works once, and only inside our frame."""

from __future__ import annotations

import secrets
from collections import OrderedDict

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairtrial.webpage.seal import GUARDED_HEADERS, HOLDS_IN, guarded, holds_in

_MOST_WAITING = 200  # pages that nobody has fetched yet
_PLAIN = {key: value for key, value in GUARDED_HEADERS.items() if key != "Content-Type"}


class Previews:
    """Sealed pages that wait to be fetched, each once, by a path that nobody can guess."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self.app = Starlette(routes=[Route("/{name:path}", self._serve, methods=["GET"])])

    def add(self, html: str) -> str:
        """The path under which a page can be fetched, once."""
        name = secrets.token_urlsafe(32)
        self._waiting[name] = html
        while len(self._waiting) > _MOST_WAITING:
            self._waiting.popitem(last=False)
        return f"/{name}"

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if reason := _refusal(request.headers):  # which does not use it up
            return PlainTextResponse(reason, 403, headers=_PLAIN)
        if request.method == "HEAD":  # nor does looking whether it is there
            return Response(status_code=200 if name in self._waiting else 404, headers=GUARDED_HEADERS)
        html = self._waiting.pop(name, None)
        if html is None:
            return PlainTextResponse("This page was shown already, or never was.", 404, headers=_PLAIN)
        return Response(guarded(html), headers=GUARDED_HEADERS)


def _refusal(headers: Headers) -> str:
    """Why a page is not given out; without a reason, it is.

    Over plain HTTP from another machine no browser says where it shows what it asks for: there the page looks itself,
    and does not run outside of a frame.
    """
    if headers.get("sec-fetch-dest", "iframe") != "iframe":
        return "This page is shown only inside of fairtrial."
    if not holds_in(headers.get("user-agent", "")):
        return (
            f"This page is not shown live in this browser, where it might reach the network. "
            f"To see it live, open fairtrial in {HOLDS_IN}; its screenshots are shown in any browser."
        )
    return ""
