"""Blind voting on two answers side by side, and the board of a run's votes and verdicts."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import Any, NamedTuple

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.battles import By
from fairtrial.analyse.pair_board import PairBoard, has_judge
from fairtrial.analyse.run import Run
from fairtrial.analyse.sent import Exchange
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.figures import board_forest, small_board
from fairtrial.present.words.pair_boards import board_headline, board_next_step, concord_words, counted
from fairtrial.store.votes import WORTH, has_pairs, judged_votes, vote_of_id, voted_runs
from fairtrial.web import numbers
from fairtrial.web.cache import PATIENCE, NumberCache, patience
from fairtrial.web.result import numbers_of
from fairtrial.web.site import Site, form_view, go_to, url
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import SANDBOX
from fairtrial.workflows.vote import SIDES, Ballot, Poll

_MAX_BOOTHS = 50
_MAX_OPEN = 20
_MAX_CHARACTERS = 60_000  # of an answer on a page
_LONG_QUESTION = 2500  # characters from which a question scrolls in its own box
_BESIDE = 10  # arms on the board next to a ballot
_BY: dict[str, By] = {"votes": "votes", "verdicts": "verdicts", "both": "both"}


class Booth:
    """One person voting on one run."""

    def __init__(self, run: Run, voter: str, total: int | None) -> None:
        self._run, self._voter, self._total = run, voter, total
        self.poll = Poll(run, voter, total=total)
        self.open: dict[str, Ballot] = {}  # handed out and not cast
        self._lock = Lock()

    def next(self) -> tuple[str, Ballot] | None:
        """Return the open pair, or the next one, under a name that is valid for one vote."""
        with self._lock:
            ballot = next(iter(self.open.values()), None) or self.poll.next()
            if ballot is None:  # a run in progress may have more answers by now, and skipped pairs come again
                self.poll = Poll(self._run, self._voter, total=self._total)
                ballot = self.poll.next()
            if ballot is None:
                return None
            name = secrets.token_urlsafe(16)
            self.open[name] = ballot
            while len(self.open) > _MAX_OPEN:
                del self.open[next(iter(self.open))]
            return name, ballot

    def vote(self, name: str, choice: str) -> str | None:
        """Count a choice and return the id of the vote; empty if the pair is skipped, None if it is not open."""
        if choice not in ("skip", *SIDES):
            return None
        with self._lock:
            ballot = self.open.pop(name, None)
            if ballot is None:
                return None
            # The same pair may be open in another tab of the same voter: count one vote.
            self.open = {key: pair for key, pair in self.open.items() if pair is not ballot}
            return "" if choice == "skip" else self.poll.cast(ballot, choice)

    def undo(self, name: str) -> bool:
        """Delete a vote and show its pair again; return whether there was such a vote."""
        with self._lock:
            ballot = self.poll.undo(name)
            if ballot is None:
                return False
            self.open = {secrets.token_urlsafe(16): ballot, **self.open}
            return True


class LastVote(NamedTuple):
    """What is revealed after a vote: the names, who won, and what the judge preferred."""

    id: str
    case_id: str
    winner: str  # empty for a tie
    loser: str
    names: tuple[str, str]  # as they stood, left and right
    choice: str
    judge: str


class Votes:
    """Pages for voters."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._booths: dict[tuple[str, str], Booth] = {}
        self.routes = [
            Route("/runs/{run}/vote", self._show, methods=["GET"]),
            Route("/runs/{run}/vote", form_view(self._vote), methods=["POST"]),
            Route("/runs/{run}/vote/board", self._board_beside),
            Route("/runs/{run}/board", self._board),
        ]

    def _booth(self, run: Run, voter: str) -> Booth:
        key = (run.id, voter)
        if key not in self._booths:
            while len(self._booths) >= _MAX_BOOTHS:
                del self._booths[next(iter(self._booths))]
            self._booths[key] = Booth(run, voter, self._total(run))
        return self._booths[key]

    def _total(self, run: Run) -> int | None:
        """Return the number of pairs if the run has been analysed: counting those of a million trials takes a while."""
        known = None if run.status == "running" else numbers_of(self._site.cache, run, wait=0.0)
        return known.pairs if known else None

    def _show(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        params = request.query_params
        voter = params.get("by", "").strip()
        if not voter:  # unnamed voters get a name, so that two people's votes are not counted as one person's
            return go_to(url(request.url.path, by=f"visitor-{secrets.token_hex(3)}"))
        booth = self._booth(run, voter)
        drawn = booth.next()
        name, ballot = drawn or ("", None)
        sides = [self._side(request, ballot, side) for side in ("left", "right")] if ballot else []
        board = board_of(self._site.cache, [run], "votes", wait=PATIENCE)
        return self._site.page(
            request, "vote.html.j2", path="/arena", run=run.record, voter=voter, name=name, ballot=ballot, sides=sides,
            sandbox=SANDBOX, voted=booth.poll.voted, total=booth.poll.total,
            long=ballot is not None and len(ballot.request) > _LONG_QUESTION,
            last=_last_vote(run, params.get("last", ""), voter), missed=bool(params.get("missed")),
            board=beside_values(board), retry=url(f"/runs/{run.id}/vote/board", by=voter, wait=1),
        )  # fmt: skip

    def _side(self, request: Request, ballot: Ballot, name: str) -> dict[str, Any]:
        """Return an answer's sandboxed page or its text. A page that hangs would hang the voter too."""
        answer: str = getattr(ballot, name)
        hangs: bool = getattr(ballot, f"{name}_hangs")
        turns: tuple[Exchange, ...] = getattr(ballot, f"{name}_turns")
        html = None if hangs else extract(answer).html
        address = self._site.preview(request, html) if html is not None else None
        cut = max(0, len(answer) - _MAX_CHARACTERS)
        return {
            "name": name, "address": address, "text": answer[:_MAX_CHARACTERS], "cut": cut, "hangs": hangs,
            "turns": turns,
        }  # fmt: skip

    def _vote(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = str(form.get("by", "")).strip() or "somebody"
        booth = self._booth(run, voter)
        there = f"/runs/{run.id}/vote"
        if undone := str(form.get("undo", "")):
            return go_to(url(there, by=voter, missed="" if booth.undo(undone) else "1"))
        vote = booth.vote(str(form.get("ballot", "")), str(form.get("choice", "")))
        last = vote or str(form.get("last", ""))
        return go_to(url(there, by=voter, last=last, missed="1" if vote is None else ""))

    def _board_beside(self, request: Request) -> Response:
        """Show the small board once it is computed."""
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip()
        board = board_of(self._site.cache, [run], "votes", wait=patience(request.query_params))
        return self._site.page(
            request, "parts/vote_board.html.j2", run=run.record, voter=voter, board=beside_values(board)
        )

    def _board(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        voter = request.query_params.get("by", "").strip()
        judged = has_pairs(run.store, run.id)
        voted = any(one.run_id == run.id for one in voted_runs(run.store))
        default: By = "both" if judged and voted else "verdicts" if judged else "votes"
        by = _BY.get(request.query_params.get("by_what", ""), default)
        board = board_of(self._site.cache, [run], by, wait=patience(request.query_params))
        every = request.query_params.get("all", "")
        return self._site.page(
            request, "votes.html.j2", path="/arena", run=run.record, voter=voter, by=by, judged=judged,
            several=len(run.plan_arms) > 1, board=board_values(board, run, None if every else MOST_ARMS),
            retry=url(request.url.path, by=voter, by_what=by, all=every, wait=1),
        )  # fmt: skip


def board_of(cache: NumberCache, runs: list[Run], by: By, *, wait: float, name: str = "") -> PairBoard | None:
    """Return the board of runs; None until it is computed."""
    return cache.get(f"pairs/{name or runs[0].id}/{by}", runs, PairBoard, numbers.board, by, wait=wait)


def board_values(board: PairBoard | None, run: Run, most: int | None = None) -> dict[str, Any] | None:
    """Return what the page of a board shows, of this many arms; an arm leads to its answers in a run."""
    if board is None:
        return None
    positions = {arm.name: str(arm.position) for arm in run.plan_arms}

    def arm(name: str) -> str:
        return f"{url(f'/runs/{run.id}', sort=positions.get(name, ''))}#cases"

    return {
        "board": board,
        "headline": board_headline(board),
        "href": arm,
        "forest": board_forest(board, arm, most) if board.arms else "",
        "more": most is not None and len(board.arms) + len(board.idle) > most,
        "next": board_next_step(board),
        "concord": concord_words(board.concord),
        "counted": counted(board),
    }


def beside_values(board: PairBoard | None) -> dict[str, Any] | None:
    """Return what the board next to a ballot shows."""
    if board is None:
        return None
    return {
        "counted": counted(board),
        "table": small_board(board, _BESIDE) if board.arms else "",
        "more": max(0, len(board.arms) + len(board.idle) - _BESIDE),
        "idle": len(board.idle),
        "next": board_next_step(board),
        "concord": concord_words(board.concord),
    }


def _last_vote(run: Run, name: str, voter: str) -> LastVote | None:
    """Return a vote of this voter with its names, for the page after it."""
    row = vote_of_id(run.store, run.id, name) if name else None
    if row is None or row["voter"] != voter:
        return None
    one, other = (run.plan_arms[row[arm]].name for arm in ("arm_one", "arm_other"))
    worth = WORTH[row["choice"]]
    winner, loser = (one, other) if worth > 0.5 else (other, one) if worth < 0.5 else ("", "")
    case = run.store.cases(run.plan.id, row["case_position"], 1)[0]
    return LastVote(
        id=name,
        case_id=case.id,
        winner=winner,
        loser=loser,
        names=(one, other) if row["left"] == row["arm_one"] else (other, one),
        choice=row["choice"],
        judge=_judge_words(run, name, worth, one, other),
    )


def _judge_words(run: Run, name: str, worth: float, one: str, other: str) -> str:
    """Say what the judge, or the score, preferred; empty if there is neither."""
    judged = judged_votes(run.store, run.record, name).get(name)
    if judged is None:
        return ""
    who = "The judge" if has_judge(run) else "The score"
    if judged == 0.5:
        return f"{who} has both level{' too' if worth == 0.5 else ''}."
    if worth != 0.5 and (judged > 0.5) == (worth > 0.5):
        return f"{who} prefers the same."
    return f"{who} prefers {one if judged > 0.5 else other}."
