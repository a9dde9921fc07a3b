"""`any_of`: one of several scorers must be satisfied; the highest score counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.composite import Composite, PartSpec, combined, score_parts
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide


class AnyOf(Composite, frozen=True, kw_only=True):
    """The highest score of its parts. If a part cannot be scored, the answer is unscored."""

    guide: ClassVar = Guide(
        scale="0–100, the highest part",
        reproducibility="as its parts",
        best_for="several ways to be right",
    )
    scorers: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]

    def parts(self) -> Sequence[PartSpec]:
        return self.scorers

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self, context)
        if isinstance(parts, Unscored):
            return parts
        name, best = max(parts, key=lambda part: part[1].value)
        return combined(best.value, f"highest: {name}, {best.notes}" if best.value else "none satisfied", parts)
