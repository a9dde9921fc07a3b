"""`reading_ease`: is the answer easy to read?"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from fairtrial.plugins import Guide, Scale, Score, ScoreContext, Scorer, Unscored
from fairtrial_readability.ease import read


class ReadingEase(Scorer, frozen=True, kw_only=True):
    """Flesch's reading ease as a share of a goal: 1 from there on."""

    guide: ClassVar[Guide] = Guide(
        scale="0–100", reproducibility="deterministic", best_for="English answers that everybody should understand"
    )
    goal: Annotated[float, msgspec.Meta(gt=0, le=100, description="The reading ease that is enough.")] = 60.0

    def scales(self) -> dict[str, Scale]:
        return {"reading_ease": (0.0, 100.0)}

    async def score(self, context: ScoreContext) -> Score | Unscored:
        reading = read(context.response)
        return Score(
            value=min(1.0, reading.ease / self.goal),
            notes=f"reading ease {reading.ease:.0f}: {reading.words} words, {reading.sentences} sentences",
            metrics={"reading_ease": reading.ease},
        )
