"""The leaderboard: every arm of a suite with its newest result, by kind of case, and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.asked import cases_key
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import ArmSummary
from fairtrial.core.ids import content_hash
from fairtrial.present.arms import arm_table
from fairtrial.present.figures import Links, Measurement, history_figure, kind_figures, leaders, measured, pair_matrix
from fairtrial.present.words.asked import asked_words
from fairtrial.present.words.leaderboards import decided_words, headline_parts, settle_words
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.records import RunRecord
from fairtrial.text.printable import counted
from fairtrial.web import numbers
from fairtrial.web.cache import LONG, patience
from fairtrial.web.numbers import RunNumbers
from fairtrial.web.result import numbers_of
from fairtrial.web.site import Site, url

_MAX_RUNS = 60
_MOST_LEFT_OUT = 20  # runs that are named
_FINISHED = ("completed", "incomplete", "stopped")


class BoardRow(NamedTuple):
    """An arm as it was in its newest run."""

    run: Run
    numbers: RunNumbers
    arm: ArmSummary


class Board:
    """The page of standings over all runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/board", self._show), Route("/board/standings", self._standings)]

    def _show(self, request: Request) -> Response:
        suites = browsing.suite_names(self._site.store)
        suite = self._suite(request)
        board = self._board(suite, wait=patience(request.query_params)) if suite else None
        return self._site.page(request, "board.html.j2", suites=suites, suite=suite, board=board)

    def _standings(self, request: Request) -> Response:
        """Show the standings once they are computed."""
        board = self._board(self._suite(request), wait=LONG)
        return self._site.page(request, "parts/board.html.j2", board=board)

    def _suite(self, request: Request) -> str:
        latest = self._site.newest_runs(1)
        return request.query_params.get("suite", "") or (latest[0].record.suite_name if latest else "")

    def _board(self, suite: str, *, wait: float) -> dict[str, Any] | None:
        """Return what the page shows; None until all of it is computed."""
        records, total = browsing.runs_page(self._site.store, RunQuery(suite=suite), 0, _MAX_RUNS)
        runs, left_out = _runs_on_same_cases([Run(self._site.store, record) for record in records])
        known: list[tuple[Run, RunNumbers]] = []
        for run in runs:
            found = numbers_of(self._site.cache, run, wait=wait)
            if found is None:
                return None
            known.append((run, found))
        newest = _newest(known)
        view = {"runs": len(runs), "left_out": left_out[:_MOST_LEFT_OUT], "not_named": 0, "standings": []}
        view |= {"not_named": max(0, len(left_out) - _MOST_LEFT_OUT), "older": max(0, total - _MAX_RUNS)}
        if not newest:
            return view
        leaderboard = self._leaderboard(newest, wait)
        return None if leaderboard is None else view | _view(leaderboard, newest, known)

    def _leaderboard(self, newest: Mapping[str, BoardRow], wait: float) -> Leaderboard | None:
        arms = [(one.run.id, name) for name, one in newest.items()]
        runs = list({one.run.id: one.run for one in newest.values()}.values())
        name = f"standings/{content_hash(arms)[:24]}"
        return self._site.cache.get(name, runs, Leaderboard, numbers.standings, arms, wait=wait)


def _view(
    leaderboard: Leaderboard, newest: Mapping[str, BoardRow], known: Sequence[tuple[Run, RunNumbers]]
) -> dict[str, Any]:
    links = _links(newest)
    order = [one.label for one in leaderboard.places]
    leading = {one.label for one in leaderboard.leading}
    history = _history(known, order, leaderboard.metric)
    curve, hidden = history_figure(history, leading, metric=leaderboard.metric) if history else ("", 0)
    return {
        "leaderboard": leaderboard,
        "headline": headline_parts(leaderboard),
        "arm_href": links.arm,
        "leaders": leaders(leaderboard, {name: one.arm for name, one in newest.items()}, links),
        "settle": settle_words(leaderboard),
        "notes": _asked_notes(newest),
        "matrix": pair_matrix(leaderboard, links) if len(order) > 2 else "",
        "decided": decided_words(leaderboard),
        "kinds": kind_figures(_kinds(newest), order, {name: one.arm.aggregate.mean for name, one in newest.items()}),
        "curve": curve,
        "hidden": hidden,
        "standings": [newest[label] for label in (*order, *leaderboard.unscored)],
        "arms": arm_table([one.arm for one in newest.values()], leaderboard),
        "newest": newest,
    }


def _asked_notes(newest: Mapping[str, BoardRow]) -> list[str]:
    """Say which runs among the newest have some of the cases only."""
    runs = {one.run.id: one.numbers.summary.asked for one in newest.values()}
    return [asked_words(asked, name) for name, asked in runs.items() if asked]


def _links(newest: Mapping[str, BoardRow]) -> Links:
    """Return where arms and pairs lead: to the newest run of an arm, and to the comparison of two of them."""

    def pair(a: str, b: str) -> str:
        one, other = newest[a].run.id, newest[b].run.id
        if one == other:
            return url("/compare", runs=one, a=a, b=b)
        return url("/compare", runs=[one, other], a=f"{a}@{one}", b=f"{b}@{other}")

    return Links(arm=lambda arm: f"/runs/{newest[arm].run.id}", pair=pair)


def _runs_on_same_cases(runs: list[Run]) -> tuple[list[Run], list[tuple[RunRecord, str]]]:
    """Return the runs on the largest, most recent set of cases, and the others with why they are left out.

    A run on two of the cases must not be ranked with a run on all of them.
    """
    finished = [run for run in runs if run.record.status in _FINISHED]
    if not finished:
        return [], [(run.record, _unfinished(run)) for run in runs]
    most = max(finished, key=lambda run: (run.plan.case_count, run.id))
    whole = most.plan
    same: list[Run] = []
    others: list[tuple[RunRecord, str]] = []
    for run in runs:
        if run.record.status not in _FINISHED:
            others.append((run.record, _unfinished(run)))
        elif cases_key(run) == cases_key(most):
            same.append(run)
        elif run.plan.case_count < whole.case_count:
            others.append((run.record, f"{counted(run.plan.case_count, 'case')}, not {whole.case_count:,}"))
        else:
            others.append((run.record, "other cases"))
    return same, others


def _unfinished(run: Run) -> str:
    return "still running" if run.status == "running" else "interrupted before its end"


def _newest(known: Sequence[tuple[Run, RunNumbers]]) -> dict[str, BoardRow]:
    """Return every arm that has a score, as it was in the newest run that has it."""
    newest: dict[str, BoardRow] = {}
    for run, found in known:  # newest first
        for arm in found.summary.arms:
            if arm.aggregate.mean is not None:
                newest.setdefault(arm.arm, BoardRow(run, found, arm))
    return newest


def _kinds(newest: Mapping[str, BoardRow]) -> KindMeans:
    """Return the means by kind of case, those of each arm from its own run."""
    first = next(iter(newest.values())).numbers.kinds
    means: dict[str, dict[str, dict[str, Any]]] = {
        by: {
            kind: {
                name: own[name]
                for name, one in newest.items()
                if name in (own := one.numbers.kinds.means.get(by, {}).get(kind, {}))
            }
            for kind in kinds
        }
        for by, kinds in first.means.items()
    }
    return msgspec.structs.replace(first, means=means)


def _history(
    known: Sequence[tuple[Run, RunNumbers]], order: Sequence[str], metric: str
) -> dict[str, list[Measurement]]:
    """Return every arm over time, best first; empty if no arm is in two runs."""
    points: dict[str, list[Measurement]] = {arm: [] for arm in order}
    for run, found in reversed(known):
        for arm in found.summary.arms:
            point = measured(arm, metric, run.record.created_at, f"/runs/{run.id}")
            if point is not None and arm.arm in points:
                points[arm.arm].append(point)
    several = any(len(own) > 1 for own in points.values())
    return {arm: own for arm, own in points.items() if own} if several else {}
