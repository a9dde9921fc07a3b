"""Runs: the list of runs, and one run with its numbers and its grid of cases × arms."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import interval_words
from fairtrial.present.words.asked import asked_brief
from fairtrial.present.words.leaderboards import standing_words
from fairtrial.providers.retirement import retiring
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.store.files import delete_with_files, scored_by
from fairtrial.store.tag_names import check_tag
from fairtrial.store.todo import Mode
from fairtrial.web.cache import LONG, PATIENCE
from fairtrial.web.entries import number
from fairtrial.web.files import suite_files
from fairtrial.web.grid import grid, page_number, pager
from fairtrial.web.live import progress_of
from fairtrial.web.numbers import RunNumbers, has_waiting
from fairtrial.web.result import causes_of, details_of, numbers_of, result_of, variance_of
from fairtrial.web.series import series_state
from fairtrial.web.site import Site, form_view, go_to, url
from fairtrial.web.tasks import Task

_PAGE_SIZE = 25
_START_SECONDS = 1.5  # that a form waits for its run to begin
_FIRST_CASES = 50  # cases that are checked to find out which scorers a run uses
STATUSES = ("running", "completed", "incomplete", "interrupted", "stopped")


class Runs:
    """Pages about runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs", self._list),
            Route("/runs/{run}", self._overview, name="run"),
            Route("/runs/{run}/brief", self._brief),
            Route("/runs/{run}/result", self._result),
            Route("/runs/{run}/details", self._details),
            Route("/runs/{run}/variance", self._variance),
            Route("/runs/{run}/causes", self._causes),
            Route("/runs/{run}/stop", form_view(self._stop), methods=["POST"]),
            Route("/runs/{run}/resume", form_view(partial(self._continue, mode="resume")), methods=["POST"]),
            Route("/runs/{run}/retry", form_view(partial(self._continue, mode="retry")), methods=["POST"]),
            Route("/runs/{run}/delete", form_view(self._delete), methods=["POST"]),
            Route("/runs/{run}/tag", form_view(self._tag), methods=["POST"]),
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
        """Return one line of the list: who leads, and how sure that is."""
        return {"waits": False, **run_line(self._site, run, wait=wait)}

    # -- one run ---------------------------------------------------------------------------------

    def _overview(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        task = self._site.tasks.of_run(run.id)
        series_id = run.record.series_id
        known = None if run.status == "running" else numbers_of(self._site.cache, run, wait=PATIENCE)
        return self._site.page(
            request,
            "run.html.j2",
            run=run.record,
            plan=run.plan,
            arms=run.plan_arms,
            tags=[name for name, tagged in self._site.store.tags().items() if tagged == run.id],
            task=task,
            waiting=run.status in ("interrupted", "incomplete") and (known.waiting if known else has_waiting(run)),
            progress=progress_of(self._site, run) if run.status == "running" else None,
            series=series_state(self._site, series_id) if series_id else None,
            run_again=self._run_again_url(run),
            retiring=_ending(run),
            links=[link for link_of in self._site.run_links if (link := link_of(run))],
            result=result_of(self._site.cache, run, known) if known else None,
            **self._grid(run, request.query_params, known),
        )

    def _grid(self, run: Run, params: QueryParams, known: RunNumbers | None) -> dict[str, Any]:
        """Return the values of the grid, with its arms in the order of the ranking where that is known."""
        order = [one.label for one in known.overview.leaderboard.places] if known else []
        return {**grid(self._site, run, params, order), "counts": known.counts if known else {}}

    def _run_again_url(self, run: Run) -> str:
        """Return the address where the run's suite can be run again, empty if it is not in this folder."""
        matches = [file for file in suite_files(self._site.folder) if file.name == run.record.suite_name]
        return url("/new", file=matches[0].path) if matches else ""

    def _result(self, request: Request) -> Response:
        """Show the result once it is computed."""
        run = self._site.run(request.path_params["run"])
        known = numbers_of(self._site.cache, run, wait=LONG)
        result = result_of(self._site.cache, run, known) if known else None
        return self._site.page(request, "parts/run_result.html.j2", run=run.record, result=result)

    def _details(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        details = details_of(self._site.cache, run, wait=LONG)
        return self._site.page(request, "parts/run_details.html.j2", run=run.record, details=details)

    def _causes(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        causes = causes_of(self._site.cache, run, wait=LONG)
        return self._site.page(request, "parts/run_causes.html.j2", run=run.record, causes=causes)

    def _variance(self, request: Request) -> Response:
        run = self._site.run(request.path_params["run"])
        variance = variance_of(self._site.cache, run, wait=LONG)
        return self._site.page(request, "parts/run_variance.html.j2", run=run.record, variance=variance)

    # -- actions ---------------------------------------------------------------------------------

    def _stop(self, request: Request, form: FormData) -> Response:
        run_id = request.path_params["run"]
        series_id = self._site.run(run_id).record.series_id
        task = self._site.tasks.of_run(run_id)
        if task is None and series_id is not None:  # the run has just ended: whoever clicked meant the series
            task = self._site.tasks.of_series(series_id)
        if task is None:
            raise FairtrialError("this run is not in progress in this server: stop it where it was started")
        task.stop()
        task.ended.wait(10)
        return go_to(f"/runs/{run_id}" if task.series_id is None else task.address)

    def _continue(self, request: Request, form: FormData, mode: Mode) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is already in progress")
        overrides = {"budget_usd": number(form, "budget_usd", whole=False)}
        if mode == "resume" and run.record.series_id is not None:  # as `fairtrial resume` does
            if series_state(self._site, run.record.series_id).live:
                raise FairtrialError("another run of this series is in progress: resume this one when it has ended")
            return await_run(self._site.tasks.resume_series(run.record.series_id, overrides))
        return await_run(self._site.tasks.resume(run.id, mode, overrides))

    def _delete(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        if run.status == "running":
            raise FairtrialError("this run is in progress: stop it first")
        with self._site.store.lease(run.id):
            delete_with_files(self._site.store, run.id)
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


def run_line(site: Site, run: Run, *, wait: float) -> dict[str, Any]:
    """Return what a list says about a run: its leading arms with their verdict, and how many trials have a score."""
    known = None if run.status == "running" else numbers_of(site.cache, run, wait=wait)
    line: dict[str, Any] = {
        "run": run.record,
        "arms": len(run.plan_arms),
        "cases": run.plan.case_count,
        "waits": known is None and run.status != "running",
        "leader": None,
        "failed": 0,
        "asked": "",
    }
    if known is None:
        return line
    leaderboard = known.overview.leaderboard
    arms = known.summary.arms
    line |= {
        "scored": sum(arm.scored for arm in arms),
        "trials": sum(arm.trials for arm in arms),
        "failed": sum(arm.failed + arm.unscored for arm in arms),
        "asked": asked_brief(known.summary.asked) if known.summary.asked else "",
    }
    if leaderboard.places:
        first = leaderboard.places[0]
        line |= {
            "leader": first,
            "leading": [one.label for one in leaderboard.leading],
            "standing": standing_words(leaderboard),
            "bounds": interval_words(first.aggregate.ci95, leaderboard.metric) if first.aggregate.ci95 else "",
            "metric": leaderboard.metric,
            "spent": known.summary.spent,
        }
    return line


def await_run(task: Task) -> Response:
    """Redirect to the run that a task starts, or to the task's page if the run does not begin at once."""
    task.begun.wait(_START_SECONDS)
    return go_to(task.address)


def has_scorer(run: Run, *names: str) -> bool:
    """Return whether a run uses one of these scorers, judging by its arms and its first cases."""
    if any(arm.scorer.get("type") in names for arm in run.plan_arms):
        return True
    return scored_by(run.store, run.id, run.record.scoring, names, among=_FIRST_CASES)


def _ending(run: Run) -> list[str]:
    """Return the messages about the end of a run's models, unless it ended for that."""
    found = retiring(arm.target for arm in run.plan_arms)
    return [known.words for known in found if f"{known.name}: " not in (run.record.reason or "")]
