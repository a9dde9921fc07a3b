"""`boolean`: does the answer contain the expected text, ignoring case?"""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.folding import find_word, fold


class Boolean(Scorer, frozen=True, kw_only=True):
    """An answer that contains the expected text scores 1, any other 0; `negate` reverses this.

    Only whole words count, as in `contains`; with `words: false` any part of a word counts, as in Benchmaker. A case
    without an expected text passes only with `pass_if_blank: true`, and is marked as passed automatically.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="a required word or phrase, or a forbidden one with `negate`",
    )
    negate: bool = False
    words: bool = True
    pass_if_blank: bool = False

    def needs_expected(self) -> bool:
        return not self.pass_if_blank

    def forbids(self) -> bool:
        return self.negate

    async def score(self, context: ScoreContext) -> Score | Unscored:
        expected = context.expected
        if not expected:
            return Score(value=1.0, raw=1.0, confidence=1.0, automatic=True, notes="automatic pass: no expected text")
        if self.words:
            contained = find_word(fold(expected), fold(context.response))
        else:
            contained = expected.casefold() in context.response.casefold()
        value = float(contained is not self.negate)
        notes = "contains the expected text" if contained else "does not contain the expected text"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)
