"""Runs: the list of them, and one in numbers, with its cases × arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.series_summary import SERIES_COLUMNS, SeriesSummary, series_cells
from fairtrial.analyse.summary import ArmSummary, RunSummary, ranked
from fairtrial.analyse.variables import variables
from fairtrial.analyse.wording.comparisons import brief_lines, sentence
from fairtrial.analyse.wording.runs import failure_line, reporting_line
from fairtrial.core.errors import FairtrialError
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.files import scored_by
from fairtrial.store.naming import check_tag
from fairtrial.web import numbers
from fairtrial.web.cache import LONG, PATIENCE, patience
from fairtrial.web.entries import number
from fairtrial.web.files import suite_files
from fairtrial.web.grid import grid, page_number, pager
from fairtrial.web.live import progress_of
from fairtrial.web.numbers import RunVerdicts
from fairtrial.web.site import Site, go_to, posted, url
from fairtrial.web.tasks import Task

_RUNS = 25
_FIRST = 50  # cases that are looked at to see what scores a run
_LEAST_SPAN = 10.0  # points of a score on an axis
_LINE = 14.0  # the height of a label in a figure
STATUSES = ("running", "completed", "incomplete", "interrupted", "stopped")
_TOO_MANY = 20_000  # trials of a run that goes on: its means are shown, its analysis waits for its end


class Runs:
    """Pages about runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs", self._list),
            Route("/runs/{run}", self._overview, name="run"),
            Route("/runs/{run}/brief", self._brief),
            Route("/runs/{run}/numbers", self._numbers),
            Route("/runs/{run}/verdicts", self._verdicts),
            Route("/runs/{run}/stop", posted(self._stop), methods=["POST"]),
            Route("/runs/{run}/resume", posted(self._resume), methods=["POST"]),
            Route("/runs/{run}/retry", posted(self._retry), methods=["POST"]),
            Route("/runs/{run}/delete", posted(self._delete), methods=["POST"]),
            Route("/runs/{run}/tag", posted(self._tag), methods=["POST"]),
            Route("/series/{series}", self._series),
        ]

    # -- the list --------------------------------------------------------------------------------

    def _list(self, request: Request) -> Response:
        asked = request.query_params
        wanted = RunQuery(**{name: asked.get(name, "").strip() for name in RunQuery._fields})
        page = page_number(asked)
        records, total = browsing.runs_page(self._site.store, wanted, (page - 1) * _RUNS, _RUNS)
        tags: dict[str, list[str]] = {}
        for name, run_id in sorted(self._site.store.tags().items()):
            tags.setdefault(run_id, []).append(name)
        return self._site.page(
            request,
            "runs.html.j2",
            rows=[self._row(Run(self._site.store, record), wait=0.0) for record in records],
            tags=tags,
            wanted=wanted,
            suites=browsing.suite_names(self._site.store),
            statuses=STATUSES,
            pager=pager("/runs", wanted._asdict(), page, total, _RUNS),
            total=total,
        )

    def _brief(self, request: Request) -> Response:
        """One line of the list, once its numbers are known."""
        run = self._site.run(request.path_params["run"])
        return self._site.page(request, "parts/run_brief.html.j2", row=self._row(run, wait=LONG))

    def _row(self, run: Run, *, wait: float) -> dict[str, Any]:
        summary = self._summary(run, wait=wait)
        arms = ranked(summary.arms) if summary else []
        return {
            "run": run.record,
            "arms": len(run.plan_arms),
            "cases": run.plan.case_count,
            "best": arms[0] if arms and arms[0].aggregate.mean is not None else None,
            "summary": summary,
            "scored": sum(arm.scored for arm in arms),
            "trials": sum(arm.trials for arm in arms),
            "waits": summary is None and run.status != "running",
        }

    # -- one run ---------------------------------------------------------------------------------

    def _overview(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        task = self._site.tasks.of_run(run.id)
        series = self._series_runs(run.record.series_id) if run.record.series_id else []
        return self._site.page(
            request,
            "run.html.j2",
            run=run.record,
            plan=run.plan,
            arms=run.plan_arms,
            tags=[name for name, named in self._site.store.tags().items() if named == run.id],
            task=task,
            progress=progress_of(self._site, run) if run.status == "running" else None,
            series=series,
            multi=self._multi(series, wait=PATIENCE) if len(series) > 1 else None,
            series_columns=SERIES_COLUMNS,
            again=self._again(run),
            has_pages=has_scorer(run, "browser", "code_judge"),
            has_problems=has_scorer(run, "optimisation"),
            **self._numbers_of(run, wait=PATIENCE),
            **self._verdicts_of(run, wait=PATIENCE),
            **grid(self._site, run, request.query_params),
        )

    def _again(self, run: Run) -> str:
        """Where the suite of a run can be run again, if it is in this folder."""
        named = [file for file in suite_files(self._site.folder) if file.name == run.record.suite_name]
        return url("/arena", file=named[0].path) if named else ""

    def _numbers(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        return self._site.page(request, "parts/run_numbers.html.j2", run=run.record, **self._numbers_of(run, wait=LONG))

    def _verdicts(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        return self._site.page(
            request, "parts/run_verdicts.html.j2", run=run.record, **self._verdicts_of(run, wait=LONG)
        )

    def _summary(self, run: Run, *, wait: float) -> RunSummary | None:
        if run.status == "running" and run.plan.case_count * len(run.plan_arms) > _TOO_MANY:
            return None
        return self._site.cache.about(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)

    def _numbers_of(self, run: Run, *, wait: float) -> dict[str, Any]:
        summary = self._summary(run, wait=wait)
        if summary is None:
            return {"summary": None}
        arms = ranked(summary.arms)
        return {
            "summary": summary,
            "ranked": arms,
            "line": {arm.arm: reporting_line(arm) for arm in arms},
            "lines": {arm.arm: arm_lines(summary, arm) for arm in arms},
            "notes": notes(summary),
            "failures": [failure_line(failure) for failure in summary.failures],
            "scatter": _scatter(arms),
            "variables": variables(run),
        }

    def _verdicts_of(self, run: Run, *, wait: float) -> dict[str, Any]:
        """Who is better, as far as anybody can tell."""
        none: dict[str, Any] = {"verdicts": [], "verdicts_wait": False, "verdict_notes": [], "case_worth": []}
        if len(run.plan_arms) < 2 or run.status == "running":
            return none
        try:
            found = self._site.cache.about(f"compare/{run.id}", [run], RunVerdicts, numbers.verdicts, wait=wait)
        except FairtrialError:
            return none
        if found is None:
            return {**none, "verdicts_wait": True}
        pairs = found.comparisons.pairs if found.comparisons else []
        margin = found.comparisons.margin if found.comparisons else None
        said = [(pair, sentence(pair, margin), brief_lines(pair)) for pair in pairs]
        said.sort(key=lambda item: item[0].verdict == "cannot tell")
        about = found.comparisons.notes if found.comparisons else []
        return {**none, "verdicts": said, "verdict_notes": about, "case_worth": found.cases}

    # -- doing something about it ----------------------------------------------------------------

    def _stop(self, request: Request, form: FormData) -> Response:
        run_id = request.path_params["run"]
        task = self._site.tasks.of_run(run_id)
        if task is None:
            raise FairtrialError("this run does not go on in this server: stop it where it was started")
        task.stop()
        task.ended.wait(10)
        return go_to(f"/runs/{run_id}")

    def _resume(self, request: Request, form: FormData) -> Response:
        return self._go_on(request, form, "resume")

    def _retry(self, request: Request, form: FormData) -> Response:
        return self._go_on(request, form, "retry")

    def _go_on(self, request: Request, form: FormData, mode: Any) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is going on already")
        overrides = {"budget_usd": number(form, "budget_usd", whole=False)}
        return await_run(self._site.tasks.go_on(run.id, mode, overrides))

    def _delete(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is going on: stop it first")
        self._site.store.delete_run(run.id)
        return go_to("/runs")

    def _tag(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        name = str(form.get("name", "")).strip()
        if form.get("forget"):
            self._site.store.delete_tag(name)
        else:
            check_tag(self._site.store, name)
            self._site.store.set_tag(name, run.id)
        return go_to(f"/runs/{run.id}")

    # -- several runs of one plan ----------------------------------------------------------------

    def _series_runs(self, series_id: str) -> list[Run]:
        return [Run(self._site.store, record) for record in browsing.runs_of_series(self._site.store, series_id)]

    def _multi(self, runs: list[Run], *, wait: float) -> dict[str, Any] | None:
        """The multi-run analysis, which appears by itself."""
        if any(run.status == "running" for run in runs):
            runs = [run for run in runs if run.status != "running"]
        if len(runs) < 2:
            return None
        name = f"series/{runs[0].record.series_id}"
        found = self._site.cache.about(name, runs, SeriesSummary, numbers.series, wait=wait)
        if found is None:
            return {"waits": True}
        pairs = found.comparisons.pairs if found.comparisons else []
        return {
            "waits": False,
            "runs": list(zip(found.run_ids, found.statuses, strict=True)),
            "rows": [series_cells(arm, over) for arm, over in found.arms.items()],
            "scores": {arm: dict(zip(m.run_ids, m.scores, strict=True)) for arm, m in found.arms.items()},
            "verdicts": [
                (pair, sentence(pair, found.comparisons.margin if found.comparisons else None), brief_lines(pair))
                for pair in pairs
            ],
        }

    def _series(self, request: Request) -> Response:
        series_id = request.path_params["series"]
        runs = self._series_runs(series_id)
        if not runs:
            raise FairtrialError(f"there is no series `{series_id}` in this store")
        return self._site.page(
            request,
            "series.html.j2",
            series_id=series_id,
            runs=[run.record for run in runs],
            task=self._site.tasks.of_series(series_id),
            multi=self._multi(runs, wait=patience(request.query_params)),
            series_columns=SERIES_COLUMNS,
        )


def await_run(task: Task) -> Response:
    """Where to look once something was started: at the run if it begins at once, else at the preparations."""
    task.begun.wait(1.5)
    if task.run_id is not None:
        return go_to(f"/runs/{task.run_id}")
    return go_to(f"/tasks/{task.id}")


def _scatter(arms: Sequence[ArmSummary]) -> dict[str, Any] | None:
    """Score against cost, or against time where nothing costs anything."""
    scored = [(arm, 100 * arm.aggregate.mean) for arm in arms if arm.aggregate.mean is not None]
    paid = [
        (arm.arm, (arm.cost_usd or 0.0) / max(1, arm.scored), y, arm.aggregate.ci95)
        for arm, y in scored
        if arm.cost_usd
    ]
    timed = [(arm.arm, (arm.latency_ms.p50 or 0.0) / 1000, y, arm.aggregate.ci95) for arm, y in scored]
    points = paid or [point for point in timed if point[1] >= 0.001]
    if len(points) < 2:
        return None
    if len({(round(x, 9), round(y, 6)) for _, x, y, _ in points}) == 1:
        return None  # all in one place: nothing to see
    most = max(x for _, x, _, _ in points) or 1.0
    bounds = [100 * bound for _, _, _, ci in points if ci for bound in ci] + [y for _, _, y, _ in points]
    low, high = max(0.0, min(bounds) - 2), min(100.0, max(bounds) + 2)
    if high - low < _LEAST_SPAN:
        low = max(0.0, min(low, 100 - _LEAST_SPAN))
        high = low + _LEAST_SPAN
    drawn = []
    lines: list[float] = []  # where labels stand already: each keeps its distance from the others
    for name, x, y, ci in sorted(points, key=lambda point: -point[2]):
        height = 220 - 200 * (y - low) / (high - low)
        line = height - 6
        while any(abs(line - other) < _LINE for other in lines):
            line += 2
        lines.append(line)
        interval = tuple(220 - 200 * (100 * bound - low) / (high - low) for bound in ci) if ci else None
        drawn.append({"name": name, "x": 50 + 568 * x / most, "y": height, "line": line, "ci": interval, "at": (x, y)})
    ticks = [(low + (high - low) * step / 4, 220 - 50 * step, most * step / 4, 50 + 142 * step) for step in range(5)]
    return {"points": drawn, "axis": "USD for one answer" if paid else "seconds, median", "ticks": ticks}


def has_scorer(run: Run, *names: str) -> bool:
    """Whether one of these scorers is at work in a run, as far as its arms and its first cases tell."""
    if any(arm.scorer.get("type") in names for arm in run.plan_arms):
        return True
    return scored_by(run.store, run.id, run.record.scoring, names, among=_FIRST)
