"""What every page uses: the store, the suite folder, the running tasks and the templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import show_expected
from fairtrial.core.experiment import Case
from fairtrial.core.formatting import cost_fact, deviation, money, signs
from fairtrial.core.money import Cost
from fairtrial.present.templates import environment
from fairtrial.providers import models
from fairtrial.store import Store, browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.records import RunRecord
from fairtrial.text.printable import counted, printable, significant
from fairtrial.web import numbers
from fairtrial.web.cache import CaseOrders, NumberCache
from fairtrial.web.markdown import render_markdown
from fairtrial.web.preview import Previews
from fairtrial.web.section import Link
from fairtrial.web.sources import code_key
from fairtrial.web.tasks import Tasks

PAGES = Path(__file__).parent / "pages"
_MAX_FIELDS = 2000
_MENU: tuple[Link, ...] = (
    ("Home", "/"), ("Suites", "/suites"), ("Runs", "/runs"), ("Compare", "/compare"), ("Leaderboard", "/board"),
    ("Arena", "/arena"), ("Judges", "/judges"),
)  # fmt: skip


class Site:
    """The state shared by all pages of one server."""

    def __init__(self, store: Store, folder: Path, *, preview_port: int = 0) -> None:
        self.store, self.folder = store, folder.resolve()
        self.previews, self._preview_port = Previews(), preview_port
        self.cache, self.orders, self.tasks = NumberCache(store), CaseOrders(store), Tasks(store)
        # What sections add: to load while nobody waits, to the menu, to the pages of runs and trials, to the arena.
        self.before_visits: list[Callable[[], Any]] = []
        self.menu = list(_MENU)
        self.run_links: list[Callable[[Run], Link | None]] = []
        self.trial_parts: list[Callable[[Case, TrialRecord], Markup | None]] = []
        self.arena_parts: list[Callable[[Sequence[RunRecord]], Markup]] = []

    def warm_up(self) -> None:
        """Load what the first visitor would otherwise wait for: templates, prices, parsers, the key of the code."""
        templates = _templates()
        for name in templates.list_templates(extensions=["j2"]):
            templates.get_template(name)
        code_key(numbers.__name__)
        models.search("")
        render_markdown("")
        Editor("name: warm").set(("name",), "hot")
        for load in self.before_visits:
            load()

    def close(self) -> None:
        """Interrupt all running tasks and save what they did."""
        self.tasks.close()
        self.cache.close()
        self.orders.close()

    def run(self, name: str) -> Run:
        """Return a run by its id, as used in URLs."""
        return Run(self.store, self.store.run_of_id(name))

    def newest_runs(self, count: int, suite: str = "") -> list[Run]:
        """Return the newest runs of the store, or of a suite, the newest first."""
        records, _ = browsing.runs_page(self.store, RunQuery(suite=suite), 0, count)
        return [Run(self.store, record) for record in records]

    def preview_origin(self, request: Request) -> str:
        """Return the origin of generated pages, under the host name that the browser uses for this machine."""
        host = request.url.hostname or "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._preview_port}"

    def preview(self, request: Request, html: str) -> str:
        """Return an address at which a generated page can be fetched once."""
        return f"{self.preview_origin(request)}{self.previews.add(html)}"

    def add_templates(self, folder: Path) -> None:
        """Look for templates in one more folder, after our own."""
        loader = _templates().loader
        assert isinstance(loader, FileSystemLoader)
        if str(folder) not in loader.searchpath:
            loader.searchpath.append(str(folder))

    def part(self, template: str, **values: Any) -> Markup:
        """Render a template as a part of a page."""
        return Markup(_templates().get_template(template).render(values))  # noqa: S704  # escaped by the template

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a template as an HTML response."""
        common = {"path": request.url.path, "menu": self.menu, "working": self.tasks.open()}
        body = _templates().get_template(template).render({**common, **values})
        return HTMLResponse(body, status, headers=self._headers(request))

    def _headers(self, request: Request) -> dict[str, str]:
        policy = (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
            f"form-action 'self'; frame-src {self.preview_origin(request)}; base-uri 'none'; frame-ancestors 'none'"
        )
        return {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }


@cache
def _templates() -> Environment:
    templates = environment(PAGES)
    templates.filters.update(
        money=dollars, md=_markdown, points=_points, shown=lambda text: printable(str(text)), expected=show_expected,
        pretty=_pretty, minus=signs, sd=deviation, significant=significant, cost=cost_fact, counted=counted,
    )  # fmt: skip
    templates.globals.update(url=url)
    return templates


def form_view(handler: Callable[[Request, FormData], Response]) -> Callable[[Request], Any]:
    """Return a view that parses a submitted form and calls the handler in a thread."""

    async def view(request: Request) -> Response:
        async with request.form(max_fields=_MAX_FIELDS, max_part_size=64 * 2**20) as form:
            return await run_in_threadpool(handler, request, form)

    return view


async def read_body(request: Request, limit: int) -> bytes:
    """Return the request body; raise FairtrialError if it is larger than `limit` bytes."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise FairtrialError(f"the request is larger than {limit // 2**20 or 1} MB")
    return bytes(body)


def attachment(name: str) -> str:
    """Return the Content-Disposition value for a download; the name may contain any characters."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


def go_to(path: str) -> RedirectResponse:
    """Redirect the browser to a page after a form was handled."""
    return RedirectResponse(path, 303)


def url(path: str, **query: Any) -> str:
    """Return an address with the non-empty parts of a query."""
    params = {name: value for name, value in query.items() if value not in ("", None, False, [])}
    return f"{path}?{urlencode(params, doseq=True)}" if params else path


def _markdown(text: str) -> Markup:
    return Markup(render_markdown(text))  # noqa: S704  # sanitised there


def dollars(value: Cost | float | None) -> str:
    """Format an amount of money; nothing spent is `$0`."""
    shown = money(value)
    return "$0" if shown == "0" else shown


def _points(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:+.{digits}f}"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
