"""The board: the standings over all runs of a suite, by kind of case, and their history."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.summary import ArmSummary, RunSummary, by_mean
from fairtrial.core.ids import content_hash
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.site import Site

_MAX_RUNS = 60
_FINISHED = ("completed", "incomplete", "stopped")


class Board:
    """The page of standings over all runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/board", self._show)]

    def _show(self, request: Request) -> Response:
        suites = browsing.suite_names(self._site.store)
        latest, _ = browsing.runs_page(self._site.store, RunQuery(), 0, 1)
        suite = request.query_params.get("suite", "") or (latest[0].suite_name if latest else "")
        wait = patience(request.query_params)
        records, total = browsing.runs_page(self._site.store, RunQuery(suite=suite), 0, _MAX_RUNS) if suite else ([], 0)
        finished = [Run(self._site.store, record) for record in records if record.status in _FINISHED]
        runs, others = _runs_on_same_cases(finished)
        summaries = [(run, self._summary(run, wait)) for run in runs]
        waits = any(summary is None for _, summary in summaries)
        available = [(run, summary) for run, summary in summaries if summary is not None]
        standings = _standings(available)
        kinds = {run.id: self._kinds(run, wait) for run in {run.id: run for run, _ in standings}.values()}
        ranks = self._ranks(standings, wait)
        return self._site.page(
            request,
            "board.html.j2",
            suites=suites,
            suite=suite,
            standings=standings,
            ranks=ranks,
            kinds=_columns(standings, kinds),
            waits=waits or ranks is None or None in kinds.values(),
            others=others,
            history=_history(available),
            runs=len(runs),
            total=total,
        )

    def _summary(self, run: Run, wait: float) -> RunSummary | None:
        return self._site.cache.get(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)

    def _kinds(self, run: Run, wait: float) -> KindMeans | None:
        return self._site.cache.get(f"kinds/{run.id}", [run], KindMeans, numbers.kinds, wait=wait)

    def _ranks(self, standings: list[tuple[Run, ArmSummary]], wait: float) -> list[str] | None:
        """Return the range of ranks that the comparisons leave open for each arm; None until it is computed."""
        if len(standings) < 2:
            return ["1"] * len(standings)
        arms = [(run.id, arm.arm) for run, arm in standings]
        runs = list({run.id: run for run, _ in standings}.values())
        name = f"ranks/{content_hash(arms)[:24]}"
        ranks = self._site.cache.get(name, runs, numbers.RankSets, numbers.standing_ranks, arms, wait=wait)
        if ranks is None:
            return None
        return [str(best) if best == worst else f"{best}–{worst}" for best, worst in ranks.sets]


def _runs_on_same_cases(runs: list[Run]) -> tuple[list[Run], int]:
    """Return the runs on the largest, most recent set of cases, and how many runs on other cases are left out.

    A run on the first two cases must not be ranked beside a run on all of them.
    """
    if not runs:
        return [], 0
    whole = max(runs, key=lambda run: (run.plan.case_count, run.id)).plan
    same = [
        run
        for run in runs
        if (run.plan.dataset_sha256, run.plan.case_count) == (whole.dataset_sha256, whole.case_count)
    ]
    return same, len(runs) - len(same)


def _standings(summaries: list[tuple[Run, RunSummary]]) -> list[tuple[Run, ArmSummary]]:
    """Return every arm with its summary from the latest run that has it, best first."""
    latest: dict[str, tuple[Run, ArmSummary]] = {}
    for run, summary in summaries:  # newest first
        for arm in summary.arms:
            if arm.aggregate.mean is not None:
                latest.setdefault(arm.arm, (run, arm))
    return sorted(latest.values(), key=lambda item: by_mean(item[1].aggregate.mean))


def _columns(
    standings: list[tuple[Run, ArmSummary]], kinds: dict[str, KindMeans | None]
) -> dict[str, list[tuple[str, list[Any]]]]:
    """Return for each attribute its kinds, each with a mean for every arm on the board."""
    names: dict[str, dict[str, None]] = {}
    for means in kinds.values():
        for by, values in means.means.items() if means else ():
            names.setdefault(by, {}).update(dict.fromkeys(values))
    columns: dict[str, list[tuple[str, list[Any]]]] = {}
    for by, kind_names in names.items():
        for kind in list(kind_names)[:12]:
            row = []
            for run, arm in standings:
                of_run = kinds.get(run.id)
                row.append(of_run.means.get(by, {}).get(kind, {}).get(arm.arm) if of_run else None)
            columns.setdefault(by, []).append((kind, row))
    return columns


def _history(summaries: list[tuple[Run, RunSummary]]) -> list[dict[str, Any]]:
    """Return the means of every arm that is in at least two runs, oldest first."""
    points: dict[str, list[tuple[float, ArmSummary, str]]] = {}
    for run, summary in reversed(summaries):
        for arm in summary.arms:
            if arm.aggregate.mean is not None:
                points.setdefault(arm.arm, []).append((run.record.created_at, arm, run.id))
    return [{"arm": arm, "points": means} for arm, means in points.items() if len(means) > 1][:12]
