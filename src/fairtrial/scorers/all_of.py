"""`all_of`: all of several scorers must be satisfied; the lowest score counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.composite import Composite, PartSpec, combined, score_parts
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide


class AllOf(Composite, frozen=True, kw_only=True):
    """The lowest score of its parts. If a part cannot be scored, the answer is unscored."""

    guide: ClassVar = Guide(
        scale="0–100, the lowest part",
        reproducibility="as its parts",
        best_for="several requirements at once",
    )
    scorers: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]

    def parts(self) -> Sequence[PartSpec]:
        return self.scorers

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self, context)
        if isinstance(parts, Unscored):
            return parts
        name, worst = min(parts, key=lambda part: part[1].value)
        notes = f"lowest: {name}, {worst.notes}" if worst.value < 1 else "all satisfied"
        return combined(worst.value, notes, parts)
