"""Labels: people score single answers without seeing their arms, and correct the judges' scores by that."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.labels import ArmLabels
from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.place import COLUMNS, Place
from fairtrial.present.words.judges import corrected_words, labels_sentence
from fairtrial.stats.correction import FEWEST_LABELS
from fairtrial.store import opinions
from fairtrial.store.arriving import check_arrived
from fairtrial.web import numbers
from fairtrial.web.cache import patience
from fairtrial.web.grid import is_position
from fairtrial.web.site import Site, form_view, go_to, url
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import SANDBOX
from fairtrial.workflows.label import read_mark


class LabelPages:
    """Pages for people who label answers."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/runs/{run}/label", self._label, methods=["GET"]),
            Route("/runs/{run}/label", form_view(self._mark), methods=["POST"]),
            Route("/runs/{run}/label/result", self._label_result),
        ]

    def _label(self, request: Request) -> Response:
        """Show one answer to label, without the judge's score and without the name of its arm."""
        run = self._site.run(request.path_params["run"])
        by = request.query_params.get("by", "").strip() or "person"
        place = opinions.unlabelled(self._site.store, run.record, [arm.position for arm in run.plan_arms])
        trial = run.trial_at(place) if place else None
        html = extract(trial.answer or "").html if trial and "<html" in (trial.answer or "") else None
        params = request.query_params
        labels = self._labels(run, patience(params))
        counts = opinions.label_counts(self._site.store, run.id)
        wanted = FEWEST_LABELS * len(run.plan_arms)
        return self._site.page(
            request,
            "label.html.j2",
            run=run.record,
            place=place,
            trial=trial,
            preview=self._site.preview(request, html) if html else None,
            sandbox=SANDBOX,
            by=by,
            last=self._last_label(run, params.get("marked", ""), by),
            count=sum(counts.values()),
            wanted=wanted,
            reached=sum(min(FEWEST_LABELS, counts.get(arm.position, 0)) for arm in run.plan_arms),
            each=FEWEST_LABELS,
            judged=bool(opinions.judges_asked(run.store, run.id, run.record.scoring)),
            labels=_label_values(run, labels.arms) if labels else None,
            retry=url(f"/runs/{run.id}/label/result", wait=1),
        )

    def _labels(self, run: Run, wait: float) -> numbers.RunLabels | None:
        return self._site.cache.get(f"labels/{run.id}", [run], numbers.RunLabels, numbers.labels, wait=wait)

    def _label_result(self, request: Request) -> Response:
        """Show what the labels have done so far once it is computed."""
        run = self._site.run(request.path_params["run"])
        labels = self._labels(run, patience(request.query_params))
        shown = _label_values(run, labels.arms) if labels else None
        return self._site.page(request, "parts/label_result.html.j2", run=run.record, labels=shown, each=FEWEST_LABELS)

    def _last_label(self, run: Run, marked: str, by: str) -> dict[str, Any] | None:
        """Return the label that was just given, with what it was hidden from: the arm and the judge's score."""
        parts = marked.split(".")
        if len(parts) != 3 or not all(is_position(part) for part in parts):
            return None
        place = Place(*map(int, parts))
        value = opinions.label_at(run.store, run.id, place, by)
        trial = run.trial_at(place) if value is not None else None
        if trial is None:
            return None
        return {"place": marked, "value": value, "arm": trial.arm, "case": trial.case_id, "score": trial.score}

    def _mark(self, request: Request, form: FormData) -> Response:
        run = self._site.run(request.path_params["run"])
        by = str(form.get("by", "")).strip() or "person"
        parts = str(form.get("place", "")).split(".")
        if len(parts) != 3 or not all(is_position(part) for part in parts):
            raise FairtrialError("this answer is not part of this run")
        place = Place(*map(int, parts))
        check_arrived(run.record)
        if run.trial_at(place) is None:
            raise FairtrialError("this answer is not part of this run")
        if form.get("undo"):
            opinions.forget_label(run.store, run.id, place, by)
            return go_to(url(f"/runs/{run.id}/label", by=by))
        marked = ""
        if form.get("mark", "") != "":
            marked = ".".join(parts)
            label: dict[str, Any] = {**dict(zip(COLUMNS, place, strict=True)), "labeller": by}
            label |= {"value": read_mark(form.get("mark")), "note": str(form.get("note", "")).strip() or None}
            label["drawn"] = True  # by `opinions.unlabelled`, which chose what the page showed
            opinions.add_labels(run.store, run.id, run.record.scoring, [label])
        return go_to(url(f"/runs/{run.id}/label", by=by, marked=marked))


def _label_values(run: Run, arms: dict[int, ArmLabels]) -> dict[str, Any]:
    """Return what the labels say: one sentence for all arms, and one line for each."""
    names = {arm.position: arm.name for arm in run.plan_arms}
    return {
        "sentence": labels_sentence(arms),
        "arms": [(names[position], own, corrected_words(own)) for position, own in sorted(arms.items())],
    }
