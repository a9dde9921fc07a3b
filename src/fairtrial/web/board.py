"""The board: over all runs of a suite, who stands where, by kind of case, and how that changed over time."""

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

_MOST_RUNS = 60
_FINISHED = ("completed", "incomplete", "stopped")


class Board:
    """The page of all runs together."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/board", self._show)]

    def _show(self, request: Request) -> Response:
        suites = browsing.suite_names(self._site.store)
        latest, _ = browsing.runs_page(self._site.store, RunQuery(), 0, 1)
        suite = request.query_params.get("suite", "") or (latest[0].suite_name if latest else "")
        wait = patience(request.query_params)
        records, total = (
            browsing.runs_page(self._site.store, RunQuery(suite=suite), 0, _MOST_RUNS) if suite else ([], 0)
        )
        finished = [Run(self._site.store, record) for record in records if record.status in _FINISHED]
        runs, others = _on_the_same_cases(finished)
        found = [(run, self._summary(run, wait)) for run in runs]
        waits = any(summary is None for _, summary in found)
        known = [(run, summary) for run, summary in found if summary is not None]
        standings = _standings(known)
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
            history=_history(known),
            runs=len(runs),
            total=total,
        )

    def _summary(self, run: Run, wait: float) -> RunSummary | None:
        return self._site.cache.about(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)

    def _kinds(self, run: Run, wait: float) -> KindMeans | None:
        return self._site.cache.about(f"kinds/{run.id}", [run], KindMeans, numbers.kinds, wait=wait)

    def _ranks(self, standings: list[tuple[Run, ArmSummary]], wait: float) -> list[str] | None:
        """The ranks that are left open by who is better than whom; None until that is worked out."""
        if len(standings) < 2:
            return ["1"] * len(standings)
        arms = [(run.id, arm.arm) for run, arm in standings]
        runs = list({run.id: run for run, _ in standings}.values())
        name = f"ranks/{content_hash(arms)[:24]}"
        found = self._site.cache.about(name, runs, numbers.RankSets, numbers.standing_ranks, arms, wait=wait)
        if found is None:
            return None
        return [str(best) if best == worst else f"{best}–{worst}" for best, worst in found.sets]


def _on_the_same_cases(runs: list[Run]) -> tuple[list[Run], int]:
    """The runs on the most cases, as they were last, and how many runs on others are left out.

    A run on the first two cases must not stand beside a run on all of them.
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


def _standings(known: list[tuple[Run, RunSummary]]) -> list[tuple[Run, ArmSummary]]:
    """Every arm as it was in the latest run that has it, best first."""
    latest: dict[str, tuple[Run, ArmSummary]] = {}
    for run, summary in known:  # newest first
        for arm in summary.arms:
            if arm.aggregate.mean is not None:
                latest.setdefault(arm.arm, (run, arm))
    return sorted(latest.values(), key=lambda item: by_mean(item[1].aggregate.mean))


def _columns(
    standings: list[tuple[Run, ArmSummary]], kinds: dict[str, KindMeans | None]
) -> dict[str, list[tuple[str, list[Any]]]]:
    """For each attribute, its kinds, each with a mean for every arm of the board."""
    names: dict[str, dict[str, None]] = {}
    for found in kinds.values():
        for by, kinds_of_it in found.means.items() if found else ():
            names.setdefault(by, {}).update(dict.fromkeys(kinds_of_it))
    columns: dict[str, list[tuple[str, list[Any]]]] = {}
    for by, values in names.items():
        for kind in list(values)[:12]:
            row = []
            for run, arm in standings:
                known = kinds.get(run.id)
                row.append(known.means.get(by, {}).get(kind, {}).get(arm.arm) if known else None)
            columns.setdefault(by, []).append((kind, row))
    return columns


def _history(known: list[tuple[Run, RunSummary]]) -> list[dict[str, Any]]:
    """Every arm that was in two runs at least: its means as they came."""
    points: dict[str, list[tuple[float, ArmSummary, str]]] = {}
    for run, summary in reversed(known):
        for arm in summary.arms:
            if arm.aggregate.mean is not None:
                points.setdefault(arm.arm, []).append((run.record.created_at, arm, run.id))
    return [{"arm": arm, "points": found} for arm, found in points.items() if len(found) > 1][:12]
