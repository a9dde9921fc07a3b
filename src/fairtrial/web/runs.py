"""Runs: the list of runs, and one run with its numbers and its grid of cases × arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.kind_means import KindMeans
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.series_summary import SERIES_COLUMNS, SeriesSummary, series_cells
from fairtrial.analyse.summary import ArmSummary, RunSummary, ranked
from fairtrial.analyse.variables import variables
from fairtrial.analyse.wording.comparisons import brief_lines, sentence
from fairtrial.analyse.wording.kinds import NOTE, kind_tables, more_text
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
from fairtrial.web.site import Site, form_view, go_to, url
from fairtrial.web.tasks import Task

_PAGE_SIZE = 25
_START_SECONDS = 1.5  # that a form waits for its run to begin
_FIRST_CASES = 50  # cases that are checked to find out which scorers a run uses
_MIN_SPAN = 10.0  # points that the score axis covers at least
_LABEL_HEIGHT = 14.0  # of a label in a figure
STATUSES = ("running", "completed", "incomplete", "interrupted", "stopped")
_MAX_LIVE_TRIALS = 20_000  # a larger run in progress shows means only; its analysis waits for its end


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
            Route("/runs/{run}/stop", form_view(self._stop), methods=["POST"]),
            Route("/runs/{run}/resume", form_view(self._resume), methods=["POST"]),
            Route("/runs/{run}/retry", form_view(self._retry), methods=["POST"]),
            Route("/runs/{run}/delete", form_view(self._delete), methods=["POST"]),
            Route("/runs/{run}/tag", form_view(self._tag), methods=["POST"]),
            Route("/series/{series}", self._series),
        ]

    # -- the list --------------------------------------------------------------------------------

    def _list(self, request: Request) -> Response:
        params = request.query_params
        wanted = RunQuery(**{name: params.get(name, "").strip() for name in RunQuery._fields})
        page = page_number(params)
        records, total = browsing.runs_page(self._site.store, wanted, (page - 1) * _PAGE_SIZE, _PAGE_SIZE)
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
            pager=pager("/runs", wanted._asdict(), page, total, _PAGE_SIZE),
            total=total,
        )

    def _brief(self, request: Request) -> Response:
        """Show one row of the list, once its numbers are computed."""
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
            tags=[name for name, tagged in self._site.store.tags().items() if tagged == run.id],
            task=task,
            progress=progress_of(self._site, run) if run.status == "running" else None,
            series=series,
            multi=self._multi(series, wait=PATIENCE) if len(series) > 1 else None,
            series_columns=SERIES_COLUMNS,
            run_again=self._run_again_url(run),
            has_pages=has_scorer(run, "browser", "code_judge"),
            has_problems=has_scorer(run, "optimisation"),
            **self._numbers_of(run, wait=PATIENCE),
            **self._verdicts_of(run, wait=PATIENCE),
            **grid(self._site, run, request.query_params),
        )

    def _run_again_url(self, run: Run) -> str:
        """Return the arena address of the run's suite, empty if it is not in this folder."""
        matches = [file for file in suite_files(self._site.folder) if file.name == run.record.suite_name]
        return url("/arena", file=matches[0].path) if matches else ""

    def _numbers(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        return self._site.page(request, "parts/run_numbers.html.j2", run=run.record, **self._numbers_of(run, wait=LONG))

    def _verdicts(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        return self._site.page(
            request, "parts/run_verdicts.html.j2", run=run.record, **self._verdicts_of(run, wait=LONG)
        )

    def _summary(self, run: Run, *, wait: float) -> RunSummary | None:
        if run.status == "running" and run.plan.case_count * len(run.plan_arms) > _MAX_LIVE_TRIALS:
            return None
        return self._site.cache.get(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=wait)

    def _numbers_of(self, run: Run, *, wait: float) -> dict[str, Any]:
        summary = self._summary(run, wait=wait)
        if summary is None:
            return {"summary": None}
        kinds = self._site.cache.get(f"kinds/{run.id}", [run], KindMeans, numbers.kinds, wait=wait)
        if kinds is None:
            return {"summary": None}
        arms = ranked(summary.arms)
        return {
            "summary": summary,
            "kind_tables": kind_tables(kinds, [arm.arm for arm in arms]),
            "kinds_note": NOTE,
            "more_kinds": more_text,
            "positions": {arm.name: str(arm.position) for arm in run.plan_arms},
            "ranked": arms,
            "line": {arm.arm: reporting_line(arm) for arm in arms},
            "lines": {arm.arm: arm_lines(summary, arm) for arm in arms},
            "notes": notes(summary),
            "failures": [failure_line(failure) for failure in summary.failures],
            "scatter": _scatter(arms),
            "variables": variables(run),
        }

    def _verdicts_of(self, run: Run, *, wait: float) -> dict[str, Any]:
        """Return which arms are better than others, and which cannot be told apart."""
        none: dict[str, Any] = {"verdicts": [], "verdicts_wait": False, "verdict_notes": [], "case_notes": []}
        if len(run.plan_arms) < 2 or run.status == "running":
            return none
        try:
            verdicts = self._site.cache.get(f"compare/{run.id}", [run], RunVerdicts, numbers.verdicts, wait=wait)
        except FairtrialError:
            return none
        if verdicts is None:
            return {**none, "verdicts_wait": True}
        comparisons = verdicts.comparisons
        margin = comparisons.margin if comparisons else None
        pairs = comparisons.pairs if comparisons else []
        items = [(pair, sentence(pair, margin), brief_lines(pair)) for pair in pairs]
        items.sort(key=lambda item: item[0].verdict == "cannot tell")
        remarks = comparisons.notes if comparisons else []
        return {**none, "verdicts": items, "verdict_notes": remarks, "case_notes": verdicts.cases}

    # -- actions ---------------------------------------------------------------------------------

    def _stop(self, request: Request, form: FormData) -> Response:
        run_id = request.path_params["run"]
        task = self._site.tasks.of_run(run_id)
        if task is None:
            raise FairtrialError("this run is not in progress in this server: stop it where it was started")
        task.stop()
        task.ended.wait(10)
        return go_to(f"/runs/{run_id}")

    def _resume(self, request: Request, form: FormData) -> Response:
        return self._continue(request, form, "resume")

    def _retry(self, request: Request, form: FormData) -> Response:
        return self._continue(request, form, "retry")

    def _continue(self, request: Request, form: FormData, mode: Any) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is already in progress")
        overrides = {"budget_usd": number(form, "budget_usd", whole=False)}
        return await_run(self._site.tasks.resume(run.id, mode, overrides))

    def _delete(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is in progress: stop it first")
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
        """Return the analysis across runs, None with fewer than two finished ones."""
        if any(run.status == "running" for run in runs):
            runs = [run for run in runs if run.status != "running"]
        if len(runs) < 2:
            return None
        name = f"series/{runs[0].record.series_id}"
        summary = self._site.cache.get(name, runs, SeriesSummary, numbers.series, wait=wait)
        if summary is None:
            return {"waits": True}
        comparisons = summary.comparisons
        margin = comparisons.margin if comparisons else None
        return {
            "waits": False,
            "runs": list(zip(summary.run_ids, summary.statuses, strict=True)),
            "rows": [series_cells(arm, over) for arm, over in summary.arms.items()],
            "scores": {arm: dict(zip(m.run_ids, m.scores, strict=True)) for arm, m in summary.arms.items()},
            "verdicts": [
                (pair, sentence(pair, margin), brief_lines(pair)) for pair in (comparisons.pairs if comparisons else [])
            ],
        }

    def _series(self, request: Request) -> Response:
        series_id = request.path_params["series"]
        runs = self._series_runs(series_id)
        if not runs:
            raise FairtrialError(f"no series `{series_id}` in this store")
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
    """Redirect to the run that a task starts, or to the task's page if the run does not begin at once."""
    task.begun.wait(_START_SECONDS)
    return go_to(task.address)


def _scatter(arms: Sequence[ArmSummary]) -> dict[str, Any] | None:
    """Return the points of score against cost, or against latency if nothing has a cost."""
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
        return None  # all points coincide: nothing to see
    most = max(x for _, x, _, _ in points) or 1.0
    bounds = [100 * bound for _, _, _, ci in points if ci for bound in ci] + [y for _, _, y, _ in points]
    low, high = max(0.0, min(bounds) - 2), min(100.0, max(bounds) + 2)
    if high - low < _MIN_SPAN:
        low = max(0.0, min(low, 100 - _MIN_SPAN))
        high = low + _MIN_SPAN
    drawn = []
    lines: list[float] = []  # heights of the labels so far: they must not overlap
    for name, x, y, ci in sorted(points, key=lambda point: -point[2]):
        height = 220 - 200 * (y - low) / (high - low)
        line = height - 6
        while any(abs(line - taken) < _LABEL_HEIGHT for taken in lines):
            line += 2
        lines.append(line)
        interval = tuple(220 - 200 * (100 * bound - low) / (high - low) for bound in ci) if ci else None
        drawn.append({"name": name, "x": 50 + 568 * x / most, "y": height, "line": line, "ci": interval, "at": (x, y)})
    ticks = [(low + (high - low) * step / 4, 220 - 50 * step, most * step / 4, 50 + 142 * step) for step in range(5)]
    return {"points": drawn, "axis": "USD per answer" if paid else "median seconds", "ticks": ticks}


def has_scorer(run: Run, *names: str) -> bool:
    """Return whether a run uses one of these scorers, judging by its arms and its first cases."""
    if any(arm.scorer.get("type") in names for arm in run.plan_arms):
        return True
    return scored_by(run.store, run.id, run.record.scoring, names, among=_FIRST_CASES)
