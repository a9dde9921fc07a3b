"""`cost`: was the answer cheap enough?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.scorers._limits import bound_problems, within


class Cost(Scorer, frozen=True, kw_only=True):
    """An answer that cost `min` to `max` USD, with all attempts, scores 1, any other 0.

    If the cost is unknown, the answer is unscored: a model without a price, or an answer from the cache.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="varies with the tokens used",
        best_for="limits on the price of an answer, together with other requirements in `all_of`",
    )
    reads_text: ClassVar[bool] = False
    min: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return bound_problems("cost", self.min, self.max)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        cost = context.answer.cost_usd if context.answer else None
        if cost is None:
            return Unscored(kind="unknown", message="the cost of the answer is unknown")
        return within(cost, self.min, self.max, f"${cost:.6g}")
