"""Score one answer with the right scorer; return a reason instead of raising an exception."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from fairtrial.core.accepted import score_answer
from fairtrial.core.answer import FILTERED, REFUSED, Answer
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.ids import canonical_json
from fairtrial.core.judge import Judgement, Panel, family_of
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.trial import Trial
from fairtrial.core.workshop import Workshop

_DECLINED = {REFUSED: "refused", FILTERED: "filtered"}
_MAX_NOTES = 500


class Scoring:
    """One way to score a run: as the suite says, or with one scorer for everything."""

    def __init__(
        self,
        folder: Path,
        override: ScorerSpec | None = None,
        number: int = 0,
        *,
        on_refusal: Literal["wrong", "unscored", "right"] = "wrong",
    ) -> None:
        self.number = number
        self._on_refusal = on_refusal
        self._folder, self._override = folder, override
        self._scorers: dict[bytes, Scorer] = {}

    def spec_of(self, trial: Trial) -> ScorerSpec:
        """Return the scorer for this trial."""
        return self._override or trial.arm.scorer_of(trial.case)

    def scales_of(self, trial: Trial) -> dict[str, Scale]:
        """Return the scales of this trial's extra metrics."""
        return self._scorer(self.spec_of(trial)).scales()

    async def score(
        self,
        trial: Trial,
        answer: Answer,
        panel: Panel | None = None,
        kept: Sequence[Judgement] = (),
        workshop: Workshop | None = None,
    ) -> Score | Unscored:
        """Return the answer's score. Any error becomes a reason for no score, never a 0."""
        context = ScoreContext(
            response=answer.text,
            case=trial.case,
            finish_reason=answer.finish_reason,
            folder=self._folder,
            panel=panel,
            family=family_of(trial.arm.target) if panel and panel.judges else "",
            workshop=workshop,
            kept={judgement.place: judgement for judgement in kept},
        )
        try:
            scorer = self._scorer(self.spec_of(trial))
            if answer.finish_reason in _DECLINED and not scorer.scores_refusals:
                return self._score_refusal(scorer, answer)
            return _validated(await score_answer(scorer, context))
        except (Exception, SystemExit) as error:  # a plug-in may do anything
            return Unscored(kind="crashed", message=f"the scorer raised {type(error).__name__}: {error}")

    def _score_refusal(self, scorer: Scorer, answer: Answer) -> Score | Unscored:
        """Score a refusal as the suite says, on every metric that has bounds, without looking at the text."""
        kind, text = _DECLINED[answer.finish_reason or ""], " ".join(answer.text.split())
        notes = f"{kind}: {text[:_MAX_NOTES]}" if text else kind
        if self._on_refusal == "unscored":
            return Unscored(kind=kind, message=notes)
        right = self._on_refusal == "right"
        bounds = {name: scale[right] for name, scale in scorer.scales().items()}  # worst or best
        metrics = {name: bound for name, bound in bounds.items() if bound is not None}
        return Score(value=float(right), notes=notes, metrics=metrics)

    def _scorer(self, spec: ScorerSpec) -> Scorer:
        key = canonical_json(spec)
        if key not in self._scorers:
            self._scorers[key] = build_scorer(spec)
        return self._scorers[key]


def _validated(result: object) -> Score | Unscored:
    """Accept only a score from 0 to 1, whatever else a scorer returns."""
    if isinstance(result, Unscored):
        return result
    if not isinstance(result, Score):
        return Unscored(kind="range", message=f"the scorer returned {type(result).__name__} instead of a score")
    value = result.value
    if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
        metrics = {name: float(metric) for name, metric in result.metrics.items() if _is_number(metric)}
        return msgspec.structs.replace(result, value=float(value), metrics=metrics)
    return Unscored(kind="range", message=f"the scorer returned {value!r}, which is not a number from 0 to 1")


def _is_number(value: object) -> bool:
    """Return whether a metric is a finite number; anything else would make a run unreadable."""
    return isinstance(value, bool | int | float) and math.isfinite(value)
