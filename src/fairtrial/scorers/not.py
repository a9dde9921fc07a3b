"""`not`: the opposite of another scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from fairtrial.core.composite import Composite, PartSpec, combined, score_parts
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide


class Not(Composite, frozen=True, kw_only=True):
    """100 minus the score of another scorer: right where that one is wrong.

    With several accepted answers, none of them may be met. An answer in which nothing was found to score (`extract`
    with `missing: wrong`) stays wrong.
    """

    guide: ClassVar = Guide(
        scale="100 minus the part",
        reproducibility="as its part",
        best_for="what an answer must not be: a refusal, a wrong answer, too long",
    )
    scorer: str | dict[str, Any]

    def parts(self) -> Sequence[PartSpec]:
        return [self.scorer]

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self, context)
        if isinstance(parts, Unscored):
            return parts
        ((name, part),) = parts
        nothing_found = (part.details or {}).get("extracted", "") is None
        value = 0.0 if nothing_found else 1 - part.value
        return combined(value, part.notes if nothing_found else f"not {name}: {part.notes}", parts)
