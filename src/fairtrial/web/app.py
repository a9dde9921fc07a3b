"""The web page: which address shows what. Each section of it is a file."""

from __future__ import annotations

import time
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairtrial.core.errors import FairtrialError
from fairtrial.web.arena import Arena
from fairtrial.web.board import Board
from fairtrial.web.code import Code
from fairtrial.web.compare import Compare
from fairtrial.web.guard import Bounded
from fairtrial.web.home import Home
from fairtrial.web.judges import Judges
from fairtrial.web.live import Live
from fairtrial.web.optimisation import Optimisation
from fairtrial.web.runs import Runs
from fairtrial.web.share import Share
from fairtrial.web.site import PAGES, Site
from fairtrial.web.suites import Suites
from fairtrial.web.tasks import print_broken
from fairtrial.web.trials import Trials
from fairtrial.web.votes import Votes

SECTIONS: tuple[Any, ...] = (
    Home, Suites, Arena, Live, Runs, Trials, Compare, Board, Code, Votes, Judges, Optimisation, Share,
)  # fmt: skip


def make_app(site: Site) -> ASGIApp:
    """Everything, on one site."""
    routes = [route for section in SECTIONS for route in section(site).routes]
    static = Mount("/static", StaticFiles(directory=PAGES / "static"))

    def refused(request: Request, error: Exception) -> Response:
        """Somebody must do something: one sentence says what."""
        return _said(site, request, 400, "That cannot be done", str(error))

    def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        words = {404: "There is no such page.", 405: "This address takes something else."}
        detail = error.detail if isinstance(error, HTTPException) else ""
        return _said(site, request, status, "Not here", words.get(status, detail))

    def broken(request: Request, error: Exception) -> Response:
        print_broken(error)
        return _said(site, request, 500, "Something broke", "The reason is in the terminal where the server runs.")

    handlers = {FairtrialError: refused, HTTPException: missing, Exception: broken}
    app = Starlette(routes=[*routes, Route("/enter", desk_enter(site)), static], exception_handlers=handlers)
    return Timed(Bounded(app))


def desk_enter(site: Site) -> Any:
    """The page that asks for the token; `Access` takes it."""

    def enter(request: Request) -> Response:
        asked = request.query_params
        return site.page(request, "enter.html.j2", wrong="wrong" in asked, wanted=asked.get("next", ""))

    return enter


def _said(site: Site, request: Request, status: int, title: str, message: str) -> Response:
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"error": message}, status)
    back = request.headers.get("referer", "/")
    back = back if back.startswith(f"{request.url.scheme}://{request.url.netloc}/") else "/"
    return site.page(request, "error.html.j2", status, title=title, message=message, back=back)


class Timed:
    """Says with every reply how long it took to make."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = 1000 * (time.perf_counter() - started)
                message["headers"] = [*message.get("headers", ()), (b"server-timing", b"page;dur=%.1f" % took)]
            await send(message)

        await self._app(scope, receive, timed if scope["type"] == "http" else send)
