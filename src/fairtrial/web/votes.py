"""Voting: two answers side by side, and nothing that says whose they are; and the board that comes of it."""

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
from fairtrial.web.site import Site, go_to, posted, url
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import SANDBOX
from fairtrial.workflows.vote import SIDES, Ballot, Poll

_MOST_POLLS = 50
_MOST_OPEN = 20
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
        """The pair that is open, or the next one, under a name that is good for one vote."""
        with self._lock:
            ballot = next(iter(self.open.values()), None) or self.poll.next()
            if ballot is None:  # a run that goes on may have more answers by now
                self.poll = Poll(self._run, self._voter)
                ballot = self.poll.next()
            if ballot is None:
                return None
            name = secrets.token_urlsafe(16)
            self.open[name] = ballot
            while len(self.open) > _MOST_OPEN:
                del self.open[next(iter(self.open))]
            return name, ballot

    def take(self, name: str, choice: str) -> None:
        """A choice, or that somebody would rather see the next pair; what is neither changes nothing."""
        if choice not in ("skip", *SIDES):
            return
        with self._lock:
            ballot = self.open.pop(name, None)
            if ballot is None:
                return
            # The same pair may stand in another tab of the same voter: one vote is enough.
            self.open = {other: pair for other, pair in self.open.items() if pair is not ballot}
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
            Route("/runs/{run}/vote", posted(self._take), methods=["POST"]),
            Route("/runs/{run}/board", self._board),
        ]

    def _booth(self, run: Run, voter: str) -> Booth:
        key = (run.id, voter)
        if key not in self._booths:
            while len(self._booths) >= _MOST_POLLS:
                del self._booths[next(iter(self._booths))]
            self._booths[key] = Booth(run, voter)
        return self._booths[key]

    def _show(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip()
        if not voter:  # whoever gives no name gets one, so that two people's votes are not one person's
            return go_to(url(request.url.path, by=f"visitor-{secrets.token_hex(3)}"))
        booth = self._booth(run, voter)
        found = booth.next()
        if found is None:
            return go_to(url(f"/runs/{run.id}/board", by=voter))
        name, ballot = found
        sides = [
            self._side(request, "left", ballot.left, hangs=ballot.left_hangs),
            self._side(request, "right", ballot.right, hangs=ballot.right_hangs),
        ]
        return self._site.page(
            request, "vote.html.j2", run_id=run.id, voter=voter, ballot=name, case=ballot.case_id,
            request_text=ballot.request, sides=sides, sandbox=SANDBOX, cast=booth.cast, remaining=booth.poll.remaining,
        )  # fmt: skip

    def _side(self, request: Request, name: str, answer: str, *, hangs: bool) -> dict[str, Any]:
        """What is shown of an answer: its page, sealed, or its text. A page that hangs would hang the voter too."""
        html = None if hangs else extract(answer).html
        address = self._site.preview(request, html) if html is not None else None
        return {"name": name, "address": address, "text": answer, "hangs": hangs}

    def _take(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = str(form.get("by", "")).strip() or "somebody"
        self._booth(run, voter).take(str(form.get("ballot", "")), str(form.get("choice", "")))
        return go_to(url(f"/runs/{run.id}/vote", by=voter))

    def _board(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip() or "somebody"
        judged = next(opinions.pairs(run.store, run.id), None) is not None
        cast = list(votes(run.store, run.id))
        usual: By = "both" if judged and cast else "verdicts" if judged else "votes"
        by = _BY.get(request.query_params.get("by_what", ""), usual)
        wait = patience(request.query_params)
        again = url(request.url.path, by=voter, by_what=by, wait=1)
        values: dict[str, Any] = {"headline": "", "rows": [], "notes": [], "again": ""}
        try:
            found = self._site.cache.about(f"rank/{run.id}/{by}", [run], Ranking, numbers.ranking, by, wait=wait)
            values |= {"again": again} if found is None else _ranked(found)
        except FairtrialError as error:
            values["headline"] = str(error)
        return self._site.page(
            request, "votes.html.j2", run=run.record, voter=voter, cast=len(cast), by=by, judged=judged,
            columns=COLUMNS, **values,
        )  # fmt: skip


def _ranked(found: Ranking) -> dict[str, Any]:
    return {
        "headline": ranking_headline(found),
        "rows": [ranked_cells(place, found.metric) for place in found.places],
        "notes": found.notes,
    }
