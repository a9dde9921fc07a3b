"""`levenshtein`: how many characters have to be changed to get the expected text?"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.folding import fold

_MAX_WORK = 10**10  # product of the lengths: about a second during which nothing else runs


class Levenshtein(Scorer, frozen=True, kw_only=True):
    """1 − distance / length of the longer text; characters inserted, deleted or replaced count 1 each.

    With `max_distance`, an answer scores 1 if it differs in at most this many characters, else 0. Blanks around
    the texts are ignored; with `fold` also case, Unicode forms and runs of blanks, as in `match`.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="transcriptions, spelling, texts that should be nearly the same",
    )
    fold: bool = False
    max_distance: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        from rapidfuzz.distance import Levenshtein as Distance

        response, expected = context.response.strip(), context.expected
        if self.fold:
            response, expected = fold(response), fold(expected)
        if len(response) * len(expected) > _MAX_WORK:
            return Unscored(kind="size", message="the texts are too long to compute their distance")
        distance = Distance.distance(response, expected)
        value = 1 - distance / max(len(response), len(expected), 1)
        if self.max_distance is not None:
            value = float(distance <= self.max_distance)
        return Score(value=value, raw=value, confidence=1.0, notes=f"distance {distance}")
