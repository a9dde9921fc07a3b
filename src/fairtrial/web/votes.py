"""Blind voting on two answers side by side, and the board of the votes."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.battles import By
from fairtrial.analyse.rank import Ranking
from fairtrial.analyse.wording.ranks import COLUMNS, ranked_cells, ranking_headline
from fairtrial.core.errors import FairtrialError
from fairtrial.store import opinions
from fairtrial.store.votes import votes
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.site import Site, form_view, go_to, url
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import SANDBOX
from fairtrial.workflows.vote import SIDES, Ballot, Poll

_MAX_BOOTHS = 50
_MAX_OPEN = 20
_BY: dict[str, By] = {"votes": "votes", "verdicts": "verdicts", "both": "both", "scores": "scores"}


class Booth:
    """One person voting on one run."""

    def __init__(self, run: Run, voter: str) -> None:
        self._run, self._voter = run, voter
        self.poll = Poll(run, voter)
        self.open: dict[str, Ballot] = {}  # handed out and not cast
        self.cast = 0
        self._lock = Lock()

    def next(self) -> tuple[str, Ballot] | None:
        """Return the open pair, or the next one, under a name that is valid for one vote."""
        with self._lock:
            ballot = next(iter(self.open.values()), None) or self.poll.next()
            if ballot is None:  # a run in progress may have more answers by now
                self.poll = Poll(self._run, self._voter)
                ballot = self.poll.next()
            if ballot is None:
                return None
            name = secrets.token_urlsafe(16)
            self.open[name] = ballot
            while len(self.open) > _MAX_OPEN:
                del self.open[next(iter(self.open))]
            return name, ballot

    def vote(self, name: str, choice: str) -> None:
        """Count a choice or skip the pair; anything else changes nothing."""
        if choice not in ("skip", *SIDES):
            return
        with self._lock:
            ballot = self.open.pop(name, None)
            if ballot is None:
                return
            # The same pair may be open in another tab of the same voter: count one vote.
            self.open = {key: pair for key, pair in self.open.items() if pair is not ballot}
            if choice != "skip":
                self.poll.cast(ballot, choice)
                self.cast += 1


class Votes:
    """Pages for voters."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._booths: dict[tuple[str, str], Booth] = {}
        self.routes = [
            Route("/runs/{run}/vote", self._show, methods=["GET"]),
            Route("/runs/{run}/vote", form_view(self._vote), methods=["POST"]),
            Route("/runs/{run}/board", self._board),
        ]

    def _booth(self, run: Run, voter: str) -> Booth:
        key = (run.id, voter)
        if key not in self._booths:
            while len(self._booths) >= _MAX_BOOTHS:
                del self._booths[next(iter(self._booths))]
            self._booths[key] = Booth(run, voter)
        return self._booths[key]

    def _show(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip()
        if not voter:  # unnamed voters get a name, so that two people's votes are not counted as one person's
            return go_to(url(request.url.path, by=f"visitor-{secrets.token_hex(3)}"))
        booth = self._booth(run, voter)
        drawn = booth.next()
        if drawn is None:
            return go_to(url(f"/runs/{run.id}/board", by=voter))
        name, ballot = drawn
        sides = [
            self._side(request, "left", ballot.left, hangs=ballot.left_hangs),
            self._side(request, "right", ballot.right, hangs=ballot.right_hangs),
        ]
        return self._site.page(
            request, "vote.html.j2", run_id=run.id, voter=voter, ballot=name, case=ballot.case_id,
            request_text=ballot.request, sides=sides, sandbox=SANDBOX, cast=booth.cast, remaining=booth.poll.remaining,
        )  # fmt: skip

    def _side(self, request: Request, name: str, answer: str, *, hangs: bool) -> dict[str, Any]:
        """Return an answer's sandboxed page or its text. A page that hangs would hang the voter too."""
        html = None if hangs else extract(answer).html
        address = self._site.preview(request, html) if html is not None else None
        return {"name": name, "address": address, "text": answer, "hangs": hangs}

    def _vote(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = str(form.get("by", "")).strip() or "somebody"
        self._booth(run, voter).vote(str(form.get("ballot", "")), str(form.get("choice", "")))
        return go_to(url(f"/runs/{run.id}/vote", by=voter))

    def _board(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip() or "somebody"
        judged = next(opinions.pairs(run.store, run.id), None) is not None
        cast = list(votes(run.store, run.id))
        default: By = "both" if judged and cast else "verdicts" if judged else "votes"
        by = _BY.get(request.query_params.get("by_what", ""), default)
        wait = patience(request.query_params)
        retry = url(request.url.path, by=voter, by_what=by, wait=1)
        values: dict[str, Any] = {"headline": "", "rows": [], "notes": [], "retry": ""}
        try:
            ranking = self._site.cache.get(f"rank/{run.id}/{by}", [run], Ranking, numbers.ranking, by, wait=wait)
            values |= {"retry": retry} if ranking is None else _ranking_values(ranking)
        except FairtrialError as error:
            values["headline"] = str(error)
        return self._site.page(
            request, "votes.html.j2", run=run.record, voter=voter, cast=len(cast), by=by, judged=judged,
            columns=COLUMNS, **values,
        )  # fmt: skip


def _ranking_values(ranking: Ranking) -> dict[str, Any]:
    return {
        "headline": ranking_headline(ranking),
        "rows": [ranked_cells(place, ranking.metric) for place in ranking.places],
        "notes": ranking.notes,
    }
