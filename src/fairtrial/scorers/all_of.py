"""`all_of`: all of several scorers must be satisfied; the lowest score counts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.composite import any_needs_judge, as_details, check_parts, files_of, judgements_of, score_parts
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer


class AllOf(Scorer, frozen=True, kw_only=True):
    """The lowest score of its parts. If a part cannot be scored, the answer is unscored."""

    guide: ClassVar = Guide(
        scale="0–100, the lowest part",
        reproducibility="as its parts",
        best_for="several requirements at once",
    )
    sees_all: ClassVar[bool] = True  # each part picks the accepted answer that fits it best
    scorers: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return check_parts(self.scorers, case, folder)

    def needs_judge(self) -> bool:
        return any_needs_judge(self.scorers)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self.scorers, context)
        if isinstance(parts, Unscored):
            return parts
        name, worst = min(parts, key=lambda part: part[1].value)
        notes = f"lowest: {name}, {worst.notes}" if worst.value < 1 else "all satisfied"
        return Score(
            value=worst.value,
            raw=worst.value,
            notes=notes,
            details=as_details(parts),
            judgements=judgements_of(parts),
            files=files_of(parts),
        )
