"""Scoring one answer: the right scorer, and a reason instead of an exception."""

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
_MOST_NOTES = 500


class Scoring:
    """One way to score a run: what the suite says, or one scorer for everything."""

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
        """What scores this trial."""
        return self._override or trial.arm.scorer_of(trial.case)

    def scales_of(self, trial: Trial) -> dict[str, Scale]:
        """The scales of what is measured beside this trial's score."""
        return self._scorer(self.spec_of(trial)).scales()

    async def score(
        self,
        trial: Trial,
        answer: Answer,
        panel: Panel | None = None,
        kept: Sequence[Judgement] = (),
        workshop: Workshop | None = None,
    ) -> Score | Unscored:
        """The answer's score. Whatever goes wrong is a reason, never a 0."""
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
                return self._of_refusal(scorer, answer)
            return _checked(await score_answer(scorer, context))
        except (Exception, SystemExit) as error:  # a plug-in may do anything
            return Unscored(kind="crashed", message=f"the scorer raised {type(error).__name__}: {error}")

    def _of_refusal(self, scorer: Scorer, answer: Answer) -> Score | Unscored:
        """What the suite says that a refusal is worth, on every metric that has bounds; nobody looks at it."""
        kind, said = _DECLINED[answer.finish_reason or ""], " ".join(answer.text.split())
        notes = f"{kind}: {said[:_MOST_NOTES]}" if said else kind
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


def _checked(result: object) -> Score | Unscored:
    """Whatever a scorer returns, only a number from 0 to 1 is a score."""
    if isinstance(result, Unscored):
        return result
    if not isinstance(result, Score):
        return Unscored(kind="range", message=f"the scorer returned {type(result).__name__}, not a score")
    value = result.value
    if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
        metrics = {name: float(found) for name, found in result.metrics.items() if _is_number(found)}
        return msgspec.structs.replace(result, value=float(value), metrics=metrics)
    return Unscored(kind="range", message=f"the scorer gave {value!r}, not a number from 0 to 1")


def _is_number(value: object) -> bool:
    """A metric that is no number says nothing, and must not make a run unreadable."""
    return isinstance(value, bool | int | float) and math.isfinite(value)
