"""The board: over all runs of a suite, who stands where, by kind of case, and how that changed over time."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web import numbers
from fairtrial.web.desk import Desk
from fairtrial.web.digests import PATIENCE

_MOST_RUNS = 60
_LONG = 60.0


class Board:
    """The page of all runs together."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.routes = [Route("/board", self._show)]

    def _show(self, request: Request) -> Response:
        suites = browsing.suite_names(self._desk.store)
        latest, _ = browsing.runs_page(self._desk.store, RunQuery(), 0, 1)
        suite = request.query_params.get("suite", "") or (latest[0].suite_name if latest else "")
        patience = _LONG if request.query_params.get("wait") else PATIENCE
        records, total = (
            browsing.runs_page(self._desk.store, RunQuery(suite=suite), 0, _MOST_RUNS) if suite else ([], 0)
        )
        runs = [
            Run(self._desk.store, record)
            for record in records
            if record.status in ("completed", "incomplete", "stopped")
        ]
        found = [(run, self._summary(run, patience)) for run in runs]
        waits = any(summary is None for _, summary in found)
        known = [(run, summary) for run, summary in found if summary is not None]
        standings, datasets = _standings(known)
        kinds = {run.id: self._kinds(run, patience) for run in {run.id: run for run, _ in standings}.values()}
        return self._desk.page(
            request,
            "board.html.j2",
            suites=suites,
            suite=suite,
            standings=standings,
            kinds=_columns(standings, kinds),
            waits=waits or None in kinds.values(),
            several_datasets=len(datasets) > 1,
            history=_history(known),
            runs=len(runs),
            total=total,
        )

    def _summary(self, run: Run, wait: float) -> RunSummary | None:
        return self._desk.digests.about(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)

    def _kinds(self, run: Run, wait: float) -> KindMeans | None:
        return self._desk.digests.about(f"kinds/{run.id}", [run], KindMeans, numbers.kinds, wait=wait)


def _standings(known: list[tuple[Run, RunSummary]]) -> tuple[list[tuple[Run, ArmSummary]], set[str]]:
    """Every arm as it was in the latest run that has it, best first, and the datasets that these rest on."""
    latest: dict[str, tuple[Run, ArmSummary]] = {}
    for run, summary in known:  # newest first
        for arm in summary.arms:
            if arm.aggregate.mean is not None:
                latest.setdefault(arm.arm, (run, arm))
    ranked = sorted(latest.values(), key=lambda item: -(item[1].aggregate.mean or 0.0))
    return ranked, {run.plan.dataset_sha256 for run, _ in ranked}


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
