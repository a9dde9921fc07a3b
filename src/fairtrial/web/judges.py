"""Judges: calibrated on answers with known scores, and compared with people's labels and with each other."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse import Run
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.wording.judges import judging_notes
from fairtrial.config import judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.judging.calibration import Calibration
from fairtrial.store import browsing, opinions
from fairtrial.store.browsing import RunQuery
from fairtrial.web import numbers
from fairtrial.web.entries import number
from fairtrial.web.grid import page_number, pager
from fairtrial.web.site import Site, form_view, go_to

_PAGE_SIZE = 25
_SCORERS = ("llm_judge", "golden_judge", "code_judge")


class Judges:
    """Pages about judges."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/judges", self._list),
            Route("/judges/calibrate", form_view(self._calibrate), methods=["POST"]),
            Route("/judges/at-work/{task}", self._calibration_task),
            Route("/judges/{calibration}", self._show),
        ]

    def _list(self, request: Request) -> Response:
        page = page_number(request.query_params)
        rows, total = browsing.calibrations_page(self._site.store, (page - 1) * _PAGE_SIZE, _PAGE_SIZE)
        records, _ = browsing.runs_page(self._site.store, RunQuery(), 0, 20)
        runs = [Run(self._site.store, record) for record in records if record.status != "running"]
        return self._site.page(
            request,
            "judges.html.j2",
            rows=[(row, msgspec.convert(row["body"], Calibration)) for row in rows],
            pager=pager("/judges", {}, page, total, _PAGE_SIZE),
            scorers=_SCORERS,
            calibrating=[task for task in self._site.tasks.open() if task.what == "calibration"],
            panels=[(run.record, notes) for run in runs if (notes := self._judging_notes(run))],
        )

    def _judging_notes(self, run: Run) -> list[str]:
        """Return the notes on a run's judges, if they are computed already."""
        if not opinions.judges_asked(self._site.store, run.id, run.record.scoring):
            return []
        summary = self._site.cache.get(f"summary/{run.id}", [run], RunSummary, numbers.summary, wait=0.02)
        return judging_notes(summary.judging) if summary else []

    def _calibrate(self, request: Request, form: FormData) -> Response:
        name = str(form.get("judge", "")).strip()
        if not name:
            raise FairtrialError("name the model to calibrate as a judge")
        scorer = str(form.get("scorer", "llm_judge"))
        if scorer not in _SCORERS:
            raise FairtrialError(f"a judge is calibrated with one of {', '.join(_SCORERS)}")
        variables = variables_of(self._site.folder)
        spec = judge_named(name, variables, self._site.folder, _suite_text(str(form.get("instructions", ""))))
        runs = max(1, min(20, number(form, "runs") or 1))
        task = self._site.tasks.calibrate(spec, scorer={"type": scorer}, runs=runs, variables=variables)
        return go_to(f"/judges/at-work/{task.id}")

    def _calibration_task(self, request: Request) -> Response:
        task = self._site.tasks.find(request.path_params["task"])
        if task is None:
            return go_to("/judges")
        if task.ended.is_set() and not task.error:
            ids = [
                row["id"]
                for row in self._site.store.calibrations(task.result.judge_key)
                if row["created_at"] == task.result.summary.created_at
            ]
            return go_to(f"/judges/{ids[0]}" if ids else "/judges")
        return self._site.page(request, "calibrating.html.j2", task=task)

    def _show(self, request: Request) -> Response:
        name = request.path_params["calibration"]
        row = browsing.calibration(self._site.store, name)
        if row is None:
            raise FairtrialError(f"no calibration `{name}` in this store")
        calibration = msgspec.convert(row["body"], Calibration)
        earlier = [
            (past, msgspec.json.decode(past["body"], type=Calibration).summary)
            for past in self._site.store.calibrations(row["judge_key"])
            if past["prompt_hash"] == row["prompt_hash"]
        ]
        return self._site.page(request, "calibration.html.j2", calibration=calibration, row=row, earlier=earlier)


def _suite_text(instructions: str) -> str:
    """Return a minimal suite that has these instructions for its judge."""
    import yaml

    document: dict[str, Any] = {"name": "judge", "targets": ["mock:echo"]}
    if instructions.strip():
        document["judge"] = {"target": "mock:echo", "instructions": escape(instructions)}
    return yaml.safe_dump(document)
