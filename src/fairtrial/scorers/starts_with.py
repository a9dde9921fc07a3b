"""`starts_with`: does the answer begin with the expected text?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from fairtrial.core.experiment import Case
from fairtrial.core.folding import bare, find_word, fold
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer


class StartsWith(Scorer, frozen=True, kw_only=True):
    """An answer that begins with `text`, or without it with the expected text, scores 1, any other 0.

    Case, whitespace, Unicode forms and quotes or emphasis around the beginning are ignored as in `match`. Only whole
    words count: `No` is not the beginning of `Nothing`; with `words: false` it is.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="answers with a prescribed beginning: yes or no, a label",
    )
    text: str | None = None
    words: bool = True

    def needs_expected(self) -> bool:
        return self.text is None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if self.text is not None and not fold(self.text):
            yield "`text` is blank, so every answer would begin with it"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        beginning = fold(context.expected if self.text is None else self.text)
        answer = fold(context.response)
        starts = any(self._starts(text, beginning) for text in (answer, answer.lstrip("\"'`*_ "), bare(answer)))
        value = float(starts)
        notes = f"{'begins' if starts else 'does not begin'} with the expected text"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _starts(self, text: str, beginning: str) -> bool:
        if not text.startswith(beginning):
            return False
        # Of what follows, one character decides whether the word goes on; digits may go on after a point.
        return not self.words or find_word(beginning, text[: len(beginning) + 3])
