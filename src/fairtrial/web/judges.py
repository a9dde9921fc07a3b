"""Judges: calibrated on answers with known scores, and compared with people's labels and with each other."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.judging import Judging
from fairtrial.analyse.run import Run
from fairtrial.config import judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.templates import names_in
from fairtrial.core.trust import running_code
from fairtrial.judging.calibration import SAMPLES, Calibration, parse_samples
from fairtrial.present.figures import error_history, judge_figure, small_judge_figure
from fairtrial.present.words.judges import (
    agreement_notes,
    bias_words,
    calibration_headline,
    calibration_lines,
)
from fairtrial.store import browsing, opinions
from fairtrial.store.calibrations import calibrations_of
from fairtrial.store.records import RunRecord
from fairtrial.web.cache import LONG, PATIENCE
from fairtrial.web.entries import number
from fairtrial.web.grid import page_number, pager
from fairtrial.web.lending import check_providers, lenders, lent_by_run, lent_suite, run_of
from fairtrial.web.result import numbers_of
from fairtrial.web.site import Site, form_view, go_to
from fairtrial.workflows.calibrate import as_in_run, judges_of, marking_scorers, settings_of

_PAGE_SIZE = 25
_MOST_RUNS = 20  # that are looked through for judges
_SCORERS = ("llm_judge", "golden_judge", "code_judge")
_FIELDS = ("judge", "suite", "scorer", "runs", "instructions", "samples")
_RELIABLE = ("excellent", "good")
_TONES = {"excellent": "lead", "good": "lead", "fair": "", "poor": "behind"}


class Judges:
    """Pages about judges."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/judges", self._list),
            Route("/judges/in-runs", self._in_runs),
            Route("/judges/calibrate", form_view(self._calibrate), methods=["POST"]),
            Route("/judges/at-work/{task}", self._calibration_task),
            Route("/judges/at-work/{task}/stop", form_view(self._stop), methods=["POST"]),
            Route("/judges/{calibration}", self._show),
        ]

    def _list(self, request: Request) -> Response:
        params = request.query_params
        entered = {name: params[name].strip() for name in ("judge", "suite") if name in params}
        run_id = run_of(entered.get("suite", ""))
        if run_id is not None and not _has_run(self._site, run_id):
            del entered["suite"]  # it was deleted since
        return self._page(request, entered)

    def _page(self, request: Request, entered: dict[str, str], problem: str = "", field: str = "judge") -> Response:
        """Show the judges and the form; a problem is shown next to the field that it is about."""
        page = page_number(request.query_params)
        rows, total = browsing.calibrations_page(self._site.store, (page - 1) * _PAGE_SIZE, _PAGE_SIZE)
        found = [(row, msgspec.convert(row["body"], Calibration)) for row in rows]
        return self._site.page(
            request,
            "judges.html.j2",
            422 if problem else 200,
            headline=_headline([calibration for _, calibration in found]),
            rows=[_row(row, calibration) for row, calibration in found],
            pager=pager("/judges", {}, page, total, _PAGE_SIZE),
            scorers=_SCORERS,
            entered={**dict.fromkeys(_FIELDS, ""), "runs": "1", **entered},
            suites=lenders(self._site, entered.get("suite", "")),
            built_in=SAMPLES.read_text("utf-8"),
            problem=problem,
            field=field,
            calibrating=[task for task in self._site.tasks.open() if task.what == "calibration"],
            panels=self._panels(wait=PATIENCE),
        )

    def _in_runs(self, request: Request) -> Response:
        """Show the judges of the newest runs once that is computed."""
        return self._site.page(request, "parts/judges_in_runs.html.j2", panels=self._panels(wait=LONG) or [])

    def _panels(self, *, wait: float) -> list[tuple[RunRecord, dict[str, Any]]] | None:
        """Return what is known about the judges of the newest runs; None until it is computed."""
        panels: list[tuple[RunRecord, dict[str, Any]]] = []
        for run in (run for run in self._site.newest_runs(_MOST_RUNS) if run.status != "running"):
            if any(record.suite_name == run.record.suite_name for record, _ in panels):
                continue  # a newer run of the same suite says it already
            if not opinions.judges_asked(self._site.store, run.id, run.record.scoring):
                continue
            known = numbers_of(self._site.cache, run, wait=wait)
            if known is None:
                return None
            if known.summary.judging is not None:
                panels.append((run.record, self._judging(run, known.summary.judging)))
        return panels

    def _judging(self, run: Run, judging: Judging) -> dict[str, Any]:
        return {
            "lent": "" if run.record.origin else lent_by_run(run.id),
            "notes": agreement_notes(judging),
            "rated": [rating for rating in judging.judges if rating.rating is not None],
            "uncalibrated": [rating.judge for rating in judging.judges if rating.rating is None],
            "several": len(judging.judges) > 1,
        }

    def _calibrate(self, request: Request, form: FormData) -> Response:
        entered = {name: _text_of(form, name) for name in _FIELDS}
        field = "judge"
        try:
            if not entered["judge"]:
                raise FairtrialError("name the model to calibrate as a judge")
            field = "suite" if entered["suite"] else "judge"
            with running_code():
                how = self._asked(entered)
            field = "instructions"
            how["judge"] = _instructed(how["judge"], entered["instructions"])
            field = "scorer"
            how["scorer"] = _scorer_of(entered["scorer"], how["scorer"])
            field = "runs"
            how["runs"] = max(1, min(20, number(form, "runs") or 1))
            field = "samples"
            if entered["samples"]:
                how["samples"] = parse_samples(entered["samples"], "your text")
        except FairtrialError as error:
            return self._page(request, entered, str(error), field)
        task = self._site.tasks.calibrate(how.pop("judge"), **how)
        task.entered = entered
        return go_to(f"/judges/at-work/{task.id}")

    def _asked(self, entered: dict[str, str]) -> dict[str, Any]:
        """Return the judge, its scorer, and how it is called: as a run did, as a suite says, or by its name alone."""
        name, suite = entered["judge"], entered["suite"]
        if run_id := run_of(suite):
            return as_in_run(self._site.store, run_id, name)
        if suite:
            loaded = lent_suite(self._site, suite)
            scorer = next(iter(marking_scorers(loaded)), None)
            return {"judge": judges_of(loaded, name)[0], "scorer": scorer, **settings_of(loaded)}
        check_providers(self._site, [name])
        variables = variables_of(self._site.folder)
        return {"judge": judge_named(name, variables, self._site.folder), "scorer": None, "variables": variables}

    def _calibration_task(self, request: Request) -> Response:
        task = self._site.tasks.find(request.path_params["task"])
        if task is None:
            return go_to("/judges")
        if not task.ended.is_set():
            return self._site.page(request, "calibrating.html.j2", task=task, seconds=task.seconds)
        if task.error:
            return self._page(request, task.entered, task.error)
        ids = [
            row["id"]
            for row in calibrations_of(self._site.store, task.result.judge_key)
            if row["created_at"] == task.result.summary.created_at
        ]
        return go_to(f"/judges/{ids[0]}" if ids else "/judges")

    def _stop(self, request: Request, form: FormData) -> Response:
        task = self._site.tasks.find(request.path_params["task"])
        if task is not None:
            task.stop()
            task.ended.wait(10)
        return go_to("/judges")

    def _show(self, request: Request) -> Response:
        name = request.path_params["calibration"]
        row = browsing.calibration(self._site.store, name)
        if row is None:
            raise FairtrialError(f"no calibration `{name}` in this store")
        calibration = msgspec.convert(row["body"], Calibration)
        earlier = [
            (past, msgspec.json.decode(past["body"], type=Calibration).summary)
            for past in calibrations_of(self._site.store, row["judge_key"])
            if past["prompt_hash"] == row["prompt_hash"]
        ]
        return self._site.page(
            request,
            "calibration.html.j2",
            calibration=calibration,
            headline=calibration_headline(calibration),
            figure=judge_figure(calibration),
            history=error_history([(f"/judges/{past['id']}", summary) for past, summary in earlier]),
            row=row,
            earlier=earlier,
            tone=_TONES[calibration.rating],
        )


def _headline(calibrations: list[Calibration]) -> str:
    """Say how many judges can be relied on, each by its newest calibration."""
    newest: dict[str, Calibration] = {}
    for calibration in calibrations:  # newest first
        newest.setdefault(calibration.judge_key, calibration)
    if not newest:
        return "No judge is calibrated yet."
    if len(newest) == 1:
        return calibration_headline(next(iter(newest.values())))
    reliable = sum(calibration.rating in _RELIABLE for calibration in newest.values())
    return f"{reliable or 'None'} of {'the ' if not reliable else ''}{len(newest)} calibrated judges can be relied on."


def _row(row: dict[str, Any], calibration: Calibration) -> dict[str, Any]:
    return {
        "id": row["id"],
        "judge": row["judge"],
        "when": row["created_at"],
        "rating": calibration.rating,
        "tone": _TONES[calibration.rating],
        "figure": small_judge_figure(calibration),
        "words": bias_words(calibration),
        "lines": calibration_lines(calibration),
    }


def _has_run(site: Site, run_id: str) -> bool:
    try:
        site.run(run_id)
    except FairtrialError:
        return False
    return True


def _text_of(form: FormData, name: str) -> str:
    """Return a field of the form; samples may also be a file, if nothing was typed."""
    typed = str(form.get(name, "")).strip()
    file = form.get(f"{name}_file")
    if typed or not isinstance(file, UploadFile) or not file.filename:
        return typed
    return file.file.read().decode("utf-8-sig", "replace").strip()


def _instructed(judge: JudgeSpec, instructions: str) -> JudgeSpec:
    """Return a judge with these instructions, or with its own if there are none."""
    if not instructions:
        return judge
    names_in(instructions)  # raises where it is no template
    return msgspec.structs.replace(judge, instructions=instructions)


def _scorer_of(chosen: str, own: ScorerSpec | None) -> ScorerSpec | None:
    if not chosen:
        return own
    if chosen not in _SCORERS:
        raise FairtrialError(f"a judge is calibrated with one of {', '.join(_SCORERS)}")
    return own if own is not None and own.get("type") == chosen else {"type": chosen}
