"""Home: what changed beyond chance, what is running, who leads in each suite, and what is worth a look."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.analyse.run import Run
from fairtrial.core.providers import known_providers
from fairtrial.present.charts import ForestRow, mean_axis, mean_mark, mean_ticks, small_forest, sparkline
from fairtrial.present.charts.svg import safe
from fairtrial.present.words.leaderboards import headline_parts
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.records import RunRecord
from fairtrial.web import files, numbers
from fairtrial.web.cache import LONG, PATIENCE
from fairtrial.web.live import progress_of
from fairtrial.web.new_run import start_suite
from fairtrial.web.numbers import RunChanges
from fairtrial.web.result import numbers_of
from fairtrial.web.runs import await_run, run_line
from fairtrial.web.site import Site, form_view
from fairtrial.web.starting import start_text

_SUITES, _RECENT, _HISTORY = 10, 8, 8
_FINISHED = ("completed", "incomplete", "stopped")
_EXAMPLE = "capitals"


class SuiteLine(NamedTuple):
    """One suite: its newest finished run, the scores of its leader over the last runs, and what changed since."""

    line: dict[str, Any]
    history: list[float]
    changes: RunChanges | None


class Home:
    """The home page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/", self._home),
            Route("/home/suites", self._suites),
            Route("/first", form_view(self._first), methods=["POST"]),
        ]

    def _home(self, request: Request) -> Response:
        store = self._site.store
        records, total = browsing.runs_page(store, RunQuery(), 0, _RECENT)
        suites = files.suite_files(self._site.folder)
        running = [Run(store, record) for record in records if record.status == "running"]
        return self._site.page(
            request,
            "home.html.j2",
            records=records,
            total=total,
            suites=suites[:_RECENT],
            suite_count=len(suites),
            running=[(run.record, progress_of(self._site, run)) for run in running],
            keys=provider_keys(),
            ghost=_ghost() if not total else "",
            **(self._dashboard(wait=PATIENCE) if total else {"lines": []}),
        )

    def _suites(self, request: Request) -> Response:
        """Show the suites once their numbers are computed."""
        return self._site.page(request, "parts/home_suites.html.j2", **self._dashboard(wait=LONG))

    def _first(self, request: Request, form: FormData) -> Response:
        """Write the example suite, if it is not there yet, and run it: a first result with one click."""
        file = f"{_EXAMPLE}.yaml"
        if not (self._site.folder / file).exists():
            files.write(self._site.folder, file, start_text("example", _EXAMPLE), before=None)
        return await_run(start_suite(self._site, file))

    def _dashboard(self, *, wait: float) -> dict[str, Any]:
        """Return one line per suite; None instead of the lines until their numbers are computed."""
        lines: list[SuiteLine] = []
        for name in browsing.latest_suites(self._site.store, _SUITES):
            line = self._line(name, wait=wait)
            if line is None:
                return {"lines": None}
            if line.line["leader"] is not None:
                lines.append(line)
        rows = {line.line["run"].id: _row(line) for line in lines}
        newest = max((line.line["run"] for line in lines), key=lambda run: run.created_at, default=None)
        axis = mean_axis([row.ci for row in rows.values()], [row.value or 0.0 for row in rows.values()])
        return {
            "lines": lines,
            "ticks": safe(mean_ticks(axis)),
            "marks": {run: safe(mean_mark(axis, row)) for run, row in rows.items()},
            "sparklines": {line.line["run"].id: safe(sparkline(line.history)) for line in lines},
            "moved": [(line.line["run"], change) for line in lines if line.changes for change in line.changes.moved],
            "newest": newest,
            "headline": headline_parts(self._leaderboard(newest)) if newest else [],
            "compared": any(line.changes is not None for line in lines),
        }

    def _leaderboard(self, record: RunRecord) -> Leaderboard:
        known = numbers_of(self._site.cache, Run(self._site.store, record), wait=LONG)
        assert known is not None  # its line is known
        return known.overview.leaderboard

    def _line(self, suite: str, *, wait: float) -> SuiteLine | None:
        runs = [run for run in self._site.newest_runs(_HISTORY, suite) if run.status in _FINISHED]
        if not runs:
            return SuiteLine({"leader": None, "failed": 0}, [], None)
        line = run_line(self._site, runs[0], wait=wait)
        if line["waits"]:
            return None
        if line["leader"] is None:
            return SuiteLine(line, [], None)
        same = [run for run in runs if run.plan.dataset_sha256 == runs[0].plan.dataset_sha256]
        changes = None
        if len(same) > 1 and runs[0].record.series_id is None:
            changes = self._site.cache.get(
                f"changes/{same[0].id}/{same[1].id}", same[:2], RunChanges, numbers.changes, wait=wait
            )
            if changes is None:
                return None
        return SuiteLine(line, self._history(same, line["leader"].label, wait=wait), changes)

    def _history(self, runs: list[Run], arm: str, *, wait: float) -> list[float]:
        """Return the scores of an arm in these runs, oldest first."""
        values = []
        for run in reversed(runs):
            known = numbers_of(self._site.cache, run, wait=wait)
            for found in known.summary.arms if known else ():
                if found.arm == arm and found.aggregate.mean is not None:
                    values.append(100 * found.aggregate.mean)
        return values


def _row(line: SuiteLine) -> ForestRow:
    leader = line.line["leader"].aggregate
    bounds = None if leader.ci95 is None else (100 * leader.ci95[0], 100 * leader.ci95[1])
    shown = f"{100 * leader.mean:.1f}"
    return ForestRow("", 100 * leader.mean, bounds, shown, line.line["bounds"], tone="lead")


def _ghost() -> Markup:
    """Return what a result looks like, before there is one."""
    rows = [
        ForestRow("model A", 84.0, (79.0, 89.0), "84", "79 to 89", tone="lead"),
        ForestRow("model B", 82.0, (77.0, 87.0), "82", "77 to 87", tone="lead"),
        ForestRow("model C", 68.0, (62.0, 74.0), "68", "62 to 74"),
    ]
    return safe(small_forest(rows, name="", number_name="Score", within=(0.0, 100.0)))


_USUAL = ("anthropic", "google", "openai", "openrouter")  # shown even without a key


def provider_keys() -> list[tuple[str, str, bool]]:
    """Return (provider, variable, whether it is set) for every API key that is set or usual, never its value."""
    keys = []
    for name, known in known_providers().items():
        variable = known.resolved(os.environ).variable or known.variable
        if known.variable and (os.environ.get(variable) or name in _USUAL):
            keys.append((name, variable, bool(os.environ.get(variable))))
    return keys
