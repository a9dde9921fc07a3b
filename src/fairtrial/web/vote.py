"""The voting page: two answers side by side, and nothing that says whose they are."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from fairtrial.analyse import Run
from fairtrial.analyse.contestants import enter, sources_of
from fairtrial.analyse.rank import rank
from fairtrial.analyse.rank_words import COLUMNS, place_cells, ranking_headline
from fairtrial.core.errors import FairtrialError
from fairtrial.voting import SIDES, Ballot, Poll
from fairtrial.web.preview import Previews
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import SANDBOX

_FOLDER = Path(__file__).parent / "pages"


class Booth:
    """One person voting on one run."""

    def __init__(self, run: Run, poll: Poll, previews: Previews, preview_origin: str) -> None:
        self._run, self._poll, self._previews, self._origin = run, poll, previews, preview_origin
        self._open: dict[str, Ballot] = {}  # handed out and not cast
        self._cast = 0
        self._one_at_a_time = asyncio.Lock()
        environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
        self._templates = environment
        self.app = Starlette(
            routes=[
                Route("/", self._show, methods=["GET"]),
                Route("/vote", self._take, methods=["POST"]),
                Route("/board", self._board, methods=["GET"]),
                Mount("/static", StaticFiles(directory=_FOLDER / "static")),
            ]
        )

    async def _show(self, request: Request) -> Response:
        async with self._one_at_a_time:
            ballot = next(iter(self._open.values()), None) or await asyncio.to_thread(self._poll.next)
            self._open.clear()
        if ballot is None:
            return RedirectResponse("/board", 303)
        name = secrets.token_urlsafe(16)
        self._open[name] = ballot
        sides = [
            self._side("left", ballot.left, hangs=ballot.left_hangs),
            self._side("right", ballot.right, hangs=ballot.right_hangs),
        ]
        return self._page(
            "vote.html.j2",
            ballot=name,
            case=ballot.case_id,
            request_text=ballot.request,
            sides=sides,
            sandbox=SANDBOX,
            cast=self._cast,
            remaining=self._poll.remaining,
        )

    def _side(self, name: str, answer: str, *, hangs: bool) -> dict[str, Any]:
        """What is shown of an answer: its page, sealed, or its text. A page that hangs would hang the voter too."""
        html = None if hangs else extract(answer).html
        address = f"{self._origin}{self._previews.add(html)}" if html is not None else None
        return {"name": name, "address": address, "text": answer, "hangs": hangs}

    async def _take(self, request: Request) -> Response:
        form = await request.form(max_fields=5)
        choice = str(form.get("choice", ""))
        if choice not in ("skip", *SIDES):
            return RedirectResponse("/", 303)
        ballot = self._open.pop(str(form.get("ballot", "")), None)
        if ballot is not None and choice != "skip":
            await asyncio.to_thread(self._poll.cast, ballot, choice)
            self._cast += 1
        return RedirectResponse("/", 303)

    async def _board(self, request: Request) -> Response:
        try:
            found = await asyncio.to_thread(lambda: rank(enter(sources_of(self._run)), by="votes"))
        except FairtrialError as error:
            return self._page("board.html.j2", headline=str(error), columns=[], rows=[], notes=[], cast=self._cast)
        return self._page(
            "board.html.j2",
            headline=ranking_headline(found),
            columns=COLUMNS,
            rows=[place_cells(place, found.metric) for place in found.places],
            notes=found.notes,
            cast=self._cast,
        )

    def _page(self, template: str, **values: Any) -> HTMLResponse:
        policy = (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
            f"frame-src {self._origin}; base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        return HTMLResponse(self._templates.get_template(template).render(values), headers=headers)
