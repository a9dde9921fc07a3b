"""A new run: choose a suite, targets, conditions and parameters, see an estimate, and start a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial import pipeline
from fairtrial.analyse.summary import RunSummary
from fairtrial.config import RunOptions, Suite
from fairtrial.config.advice import notes, warnings
from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError, WorkFirstError
from fairtrial.core.experiment import BENCHMARK_LOCK, DEFAULT_PARAMS
from fairtrial.core.trust import running_code
from fairtrial.providers import models
from fairtrial.web import files, numbers
from fairtrial.web.entries import number, parse_number
from fairtrial.web.runs import await_run
from fairtrial.web.site import Site, form_view
from fairtrial.web.tasks import Task
from fairtrial.workflows.calibrate import calibration_notes
from fairtrial.workflows.estimate import estimate

PARAMS = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty", "seed")
_INTEGER_OPTIONS = ("repeats", "concurrency", "limit", "first")
RUN_COUNTS = (1, 3, 5, 10)


class NewRun:
    """The page for starting runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/new", self._show),
            Route("/new/estimate", self._first_estimate, methods=["GET"]),
            Route("/new/estimate", form_view(self._estimate), methods=["POST"]),
            Route("/new/run", form_view(self._run), methods=["POST"]),
        ]

    def _show(self, request: Request) -> Response:
        suites = files.suite_files(self._site.folder)
        file = request.query_params.get("file", "") or (suites[0].path if suites else "")
        values: dict[str, Any] = {"suites": suites, "file": file, "error": "", "suite": None}
        if file:
            try:
                # The choices are known without reading every case; `_first_estimate` reads them all.
                suite = self._load(file, files.read(self._site.folder, file), RunOptions(first=1))
                values |= self._choices(suite)
            except WorkFirstError:
                raise  # a page of its own offers to do it
            except FairtrialError as error:
                values["error"] = str(error)
        return self._site.page(
            request, "new_run.html.j2", params=PARAMS, lock=BENCHMARK_LOCK, counts=RUN_COUNTS, **values
        )

    def _load(self, file: str, text: str, options: RunOptions | None = None) -> Suite:
        folder = files.path_of(self._site.folder, file).parent
        return pipeline.load_text(text, file=Path(file).name, folder=folder, options=options)

    def _choices(self, suite: Suite) -> dict[str, Any]:
        targets = {arm.target.id: arm.target for arm in suite.arms}
        return {
            "suite": suite,
            "targets": [(name, models.find(f"{spec.provider}:{spec.model}")) for name, spec in targets.items()],
            "conditions": list(dict.fromkeys(arm.condition.name for arm in suite.arms)),
            "current_params": {**DEFAULT_PARAMS, **suite.arms[0].params},
        }

    def _first_estimate(self, request: Request) -> Response:
        """Show the estimate of the suite as it is."""
        file = request.query_params.get("file", "")
        return self._estimated_page(request, lambda: self._load(file, files.read(self._site.folder, file)))

    def _estimate(self, request: Request, form: FormData) -> Response:
        """Show the estimate of the suite with the chosen settings."""
        return self._estimated_page(request, lambda: self._suite_with_choices(form))

    def _estimated_page(self, request: Request, load: Callable[[], Suite]) -> Response:
        """Render the estimate, or in its place what is wrong with the suite or the choices."""
        try:
            return self._site.page(
                request, "parts/estimate.html.j2", estimated=estimate_of(self._site, load()), error=""
            )
        except FairtrialError as error:
            return self._site.page(request, "parts/estimate.html.j2", estimated=None, error=str(error))

    def _run(self, request: Request, form: FormData) -> Response:
        runs = number(form, "runs") or 1
        if runs not in RUN_COUNTS:
            raise FairtrialError(f"the number of runs must be one of {', '.join(map(str, RUN_COUNTS))}")
        with running_code():
            suite = self._suite_with_choices(form)
        return await_run(self._site.tasks.run(suite, runs))

    def _suite_with_choices(self, form: FormData) -> Suite:
        """Return the suite as it is on disk, with the choices of the form applied."""
        file = str(form.get("file", ""))
        editor = Editor(files.read(self._site.folder, file))
        added = [name.strip() for name in form.getlist("more") if isinstance(name, str) and name.strip()]
        editor.insert(("targets",), None, added)
        _set_params(editor, form)
        if judge := str(form.get("judge", "")).strip():
            current = editor.get(("judge",))
            editor.set(("judge",), {**(current if isinstance(current, dict) else {}), "target": judge})
        targets = tuple(str(name) for name in form.getlist("target"))
        if not targets and not added:
            raise FairtrialError("choose at least one target")
        conditions = tuple(str(name) for name in form.getlist("condition"))
        if not conditions:
            raise FairtrialError("choose at least one condition")
        several = len(form.getlist("all_conditions")) > 0
        options = RunOptions(
            targets=(*targets, *added),
            conditions=conditions if several else (),
            benchmark_mode=bool(form.get("benchmark_mode")),
            budget_usd=number(form, "budget_usd", whole=False),
            timeout=number(form, "timeout", whole=False),
            **{name: number(form, name) for name in _INTEGER_OPTIONS},
        )
        changed = added or judge or any(str(form.get(f"param_{name}", "")).strip() for name in PARAMS)
        text = editor.text if changed else files.read(self._site.folder, file)
        return self._load(file, text, options)


def estimate_of(site: Site, suite: Suite) -> dict[str, Any]:
    """Return what a run of a suite would take and cost, and what to know before starting it."""
    plan = estimate(suite)
    return {
        "plan": plan,
        "seconds": _seconds(site, suite, {arm.arm: arm.trials for arm in plan.arms}),
        "warnings": list(_warnings(site, suite)),
        "budget": suite.settings.budget_usd,
        "params": {arm.name: suite.variables.template_all(arm.params) for arm in suite.arms},
    }


def _warnings(site: Site, suite: Suite) -> Iterator[str]:
    yield from (*warnings(suite), *notes(suite))
    for note in calibration_notes(site.store, suite, lambda _: "calibrate it under Judges to see how reliable it is"):
        yield note.removeprefix("warning: ")


def _seconds(site: Site, suite: Suite, trials: dict[str, int]) -> float | None:
    """Estimate the duration from the latencies in the suite's last run; None if one of them is unknown."""
    run = next(iter(site.newest_runs(1, suite.name)), None)
    if run is None or run.status == "running":
        return None
    summary = site.cache.get(f"summary/{run.id}", [run], RunSummary, numbers.summary)
    medians = {arm.target: arm.latency_ms.p50 for arm in summary.arms} if summary else {}
    latencies = [medians.get(arm.target.id) for arm in suite.arms]
    if any(latency is None for latency in latencies):
        return None
    total = sum(trials[arm.name] * (latency or 0.0) for arm, latency in zip(suite.arms, latencies, strict=True))
    return total / 1000 / suite.settings.concurrency


def _set_params(editor: Editor, form: FormData) -> None:
    """Write the parameters changed in the form; those of a target or a condition keep precedence."""
    for name in PARAMS:
        text = form.get(f"param_{name}")
        if isinstance(text, str) and text.strip():
            whole = name in ("max_tokens", "seed")
            editor.set(("params", name), parse_number(text, name, whole=whole))


def start_suite(site: Site, file: str) -> Task:
    """Run a suite of the folder as it is."""
    folder = files.path_of(site.folder, file).parent
    text = files.read(site.folder, file)
    with running_code():
        suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
    return site.tasks.run(suite)
