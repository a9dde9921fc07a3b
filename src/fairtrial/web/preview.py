"""Where generated pages are shown: an origin of their own, and an address that works once."""

from __future__ import annotations

import secrets
from collections import OrderedDict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairtrial.webpage.seal import HEADERS, sealed

_MOST_WAITING = 200  # pages that nobody has fetched yet


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
        if request.method == "HEAD":  # looking whether it is there does not use it up
            return Response(status_code=200 if name in self._waiting else 404, headers=HEADERS)
        html = self._waiting.pop(name, None)
        if html is None:
            return PlainTextResponse("This page was shown already, or never was.", 404, headers=_PLAIN)
        return Response(sealed(html), headers=HEADERS)


_PLAIN = {key: value for key, value in HEADERS.items() if key != "Content-Type"}
