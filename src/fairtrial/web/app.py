"""The web application: routes, error pages and timing. Each section of the interface has its own file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.mistakes import sentence_of
from fairtrial.core.trust import looking_into, running_code
from fairtrial.present import charts
from fairtrial.store import Store
from fairtrial.store.checking import damage_behind
from fairtrial.web.arena import Arena
from fairtrial.web.board import Board
from fairtrial.web.compare import Compare
from fairtrial.web.guard import BodyLimit
from fairtrial.web.home import Home
from fairtrial.web.judges import Judges
from fairtrial.web.labels import LabelPages
from fairtrial.web.live import Live
from fairtrial.web.new_run import NewRun
from fairtrial.web.plan import Plan
from fairtrial.web.runs import Runs
from fairtrial.web.section import Section
from fairtrial.web.series import SeriesPages
from fairtrial.web.share import SharePages
from fairtrial.web.side_by_side import SideBySide
from fairtrial.web.site import PAGES, Site
from fairtrial.web.steps import Steps
from fairtrial.web.suites import Suites
from fairtrial.web.tasks import report
from fairtrial.web.trials import Trials
from fairtrial.web.votes import Votes

SECTIONS: tuple[Any, ...] = (
    Home, Suites, NewRun, Live, Runs, SeriesPages, Trials, Steps, SideBySide, Compare, Plan, Board, Arena, Votes,
    LabelPages, Judges, SharePages,
)  # fmt: skip


def sections(site: Site) -> list[Any]:
    """Return the sections of a site: ours, and those of tracks and plug-ins, which come in by the door `pages`."""
    made = [section(site) for section in SECTIONS]
    for name, section in sorted(registry.parts("pages").items()):
        with registry.tolerating("pages", name):
            if templates := getattr(section, "templates", None):
                site.add_templates(templates)
            if not isinstance(one := section(site), Section):
                raise TypeError("it has no `routes`")
            made.append(one)
    return made


def make_app(site: Site) -> ASGIApp:
    """Return the whole application for a site."""
    shown = sections(site)
    routes = [route for section in shown for route in section.routes]
    static = [
        Mount("/static/charts", StaticFiles(directory=charts.FOLDER)),
        Mount("/static", StaticFiles(directory=PAGES / "static")),
    ]

    def refused(request: Request, error: Exception) -> Response:
        """Answer a user error with one sentence that says what to do."""
        return _error_page(site, request, 400, "Request failed", str(error))

    def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        messages = {404: "There is no such page.", 405: "This address does not accept this kind of request."}
        detail = error.detail if isinstance(error, HTTPException) else ""
        return _error_page(site, request, status, "Not available", messages.get(status, detail))

    def broken(request: Request, error: Exception) -> Response:
        if damage := damage_behind(error, site.store.address):
            return refused(request, damage)
        if sentence := sentence_of(error):
            return _error_page(site, request, 400, "Request failed", sentence)
        return _error_page(site, request, 500, "Internal error", report(error, request.url.path))

    handlers: dict[Any, Any] = {FairtrialError: refused, HTTPException: missing, Exception: broken}
    for section in shown:
        handlers |= getattr(section, "errors", {})
    app = Starlette(routes=[*routes, Route("/enter", enter_view(site)), *static], exception_handlers=handlers)
    limited: ASGIApp = BodyLimit(app)
    for section in shown:
        for wrap in getattr(section, "around", ()):
            limited = wrap(limited)
    return Timed(Looking(limited, site.folder))


@contextmanager
def web_app(store: str | None = None, folder: str | Path = ".") -> Iterator[ASGIApp]:
    """Open the web page as an ASGI application without access control, for tests of pages."""
    with closing(Store(store)) as opened, closing(Site(opened, Path(folder))) as site:
        yield make_app(site)


def enter_view(site: Site) -> Any:
    """Return the view of the token form; `Access` handles what it submits."""

    def enter(request: Request) -> Response:
        params = request.query_params
        return site.page(request, "enter.html.j2", wrong="wrong" in params, wanted=params.get("next", ""))

    return enter


def _error_page(site: Site, request: Request, status: int, title: str, message: str) -> Response:
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"error": message}, status)
    back = request.headers.get("referer", "/")
    back = back if back.startswith(f"{request.url.scheme}://{request.url.netloc}/") else "/"
    return site.page(request, "error.html.j2", status, title=title, message=message, back=back)


class Looking:
    """Has every request only look at the suites of the folder; a view that is there to run something says so."""

    def __init__(self, app: ASGIApp, folder: Path) -> None:
        self._app, self._folder = app, folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with running_code(False), looking_into(self._folder):
            await self._app(scope, receive, send)


class Timed:
    """Adds to every reply a header with the time it took to make."""

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
