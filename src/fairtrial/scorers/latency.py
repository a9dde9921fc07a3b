"""`latency`: did the answer come quickly enough?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.scorers._limits import bound_problems, within


class Latency(Scorer, frozen=True, kw_only=True):
    """An answer that took `min` to `max` milliseconds scores 1, any other 0. Waits between attempts do not count.

    A cached answer keeps its original latency.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="varies with the provider's load",
        best_for="limits on the time of an answer, together with other requirements in `all_of`",
        runs="3–5",
    )
    reads_text: ClassVar[bool] = False
    min: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return bound_problems("latency", self.min, self.max)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        latency = context.answer.latency_ms if context.answer is not None else None
        if latency is None:
            return Unscored(kind="unknown", message="the latency of the answer is unknown")
        return within(latency, self.min, self.max, f"{latency:,.0f} ms")
