"""The arena: what can be voted on, the board of the votes so far, and the code arena."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.pair_board import PairBoard
from fairtrial.analyse.run import Run
from fairtrial.core.ids import content_hash
from fairtrial.present.words.pair_boards import concord_share
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.records import RunRecord
from fairtrial.store.votes import voted_runs
from fairtrial.web.cache import LONG, PATIENCE
from fairtrial.web.runs import has_scorer
from fairtrial.web.site import Site, url
from fairtrial.web.votes import board_of, board_values

_RECENT = 40  # runs that are looked through
_LISTED = 10
_SHOWN = 12  # arms on the board, until all are asked for
_MAX_KNOWN = 1000
_POOLED = 60  # runs whose votes are on one board


class Facts(NamedTuple):
    """What does not change about a scoring of a run."""

    arms: int
    pages: bool  # whether its answers are pages


class Electable(NamedTuple):
    """A run that people can vote on; `board` is None until it is computed."""

    record: RunRecord
    arms: int
    board: PairBoard | None
    agreement: str
    pages: bool


class Arena:
    """The section's page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[tuple[str, int], Facts] = {}
        self.routes = [
            Route("/arena", self._show),
            Route("/arena/votes", self._votes),
        ]

    def _show(self, request: Request) -> Response:
        runs, older = self._recent()
        return self._site.page(
            request,
            "arena.html.j2",
            parts=[part([run.record for run in runs if self._facts(run).pages]) for part in self._site.arena_parts],
            **self._vote_values(request, runs, older=older, wait=PATIENCE),
        )

    def _votes(self, request: Request) -> Response:
        """Show the part about votes once it is computed."""
        runs, older = self._recent()
        values = self._vote_values(request, runs, older=older, wait=LONG)
        return self._site.page(request, "parts/arena_votes.html.j2", **values)

    def _recent(self) -> tuple[list[Run], bool]:
        records, total = browsing.runs_page(self._site.store, RunQuery(), 0, _RECENT)
        return [Run(self._site.store, record) for record in records], total > len(records)

    def _vote_values(self, request: Request, runs: list[Run], *, older: bool, wait: float) -> dict[str, Any]:
        """Return what can be voted on, and the board of one suite's votes, as far as they are computed in time."""
        voted = voted_runs(self._site.store)
        suites = list(dict.fromkeys(one.suite_name for one in voted))
        suite = request.query_params.get("suite", "")
        suite = suite if suite in suites else next(iter(suites), "")
        deadline = time.monotonic() + wait
        ids = [one.run_id for one in voted if one.suite_name == suite][:_POOLED]
        pooled = [self._site.run(run_id) for run_id in ids]
        board = self._pooled(suite, pooled, deadline) if pooled else None
        choices = [run for run in runs if self._facts(run).arms > 1]
        listed = [self._electable(run, deadline) for run in choices[:_LISTED]]
        return {
            "runs": [one for one in listed if one.board is None or one.board.pairs],
            "waits": any(one.board is None for one in listed) or bool(pooled and board is None),
            "older": older or len(choices) > _LISTED,
            "any_run": bool(runs),
            "suites": suites,
            "suite": suite,
            "board": board_values(board, pooled[0], None if request.query_params.get("all") else _SHOWN)
            if board
            else None,
            "votes": sum(one.votes for one in voted),
            "retry": url("/arena/votes", suite=suite, all=request.query_params.get("all", "")),
        }

    def _electable(self, run: Run, deadline: float) -> Electable:
        board = board_of(self._site.cache, [run], "votes", wait=max(0.0, deadline - time.monotonic()))
        agreement = concord_share(board.concord) if board and board.concord else ""
        return Electable(run.record, self._facts(run).arms, board, agreement, self._facts(run).pages)

    def _facts(self, run: Run) -> Facts:
        """Return the facts about a run; those of a finished one are looked up once."""
        key = (run.id, run.record.scoring)
        if key in self._known:
            return self._known[key]
        facts = Facts(len(run.plan_arms), has_scorer(run, "browser", "code_judge"))
        if run.status != "running":
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = facts
        return facts

    def _pooled(self, suite: str, runs: list[Run], deadline: float) -> PairBoard | None:
        """Return the board of all votes on the runs of a suite."""
        wait = max(0.0, deadline - time.monotonic())
        return board_of(self._site.cache, runs, "votes", wait=wait, name=f"suite-{content_hash(suite)[:24]}")
