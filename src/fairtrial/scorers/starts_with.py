"""`starts_with`: does the answer begin with the expected text?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.folding import bare, find_word, fold


class StartsWith(Scorer, frozen=True, kw_only=True):
    """An answer that begins with `text`, or without it with the expected text, scores 1, any other 0.

    Case, whitespace, Unicode forms and quotes or emphasis around the beginning are ignored as in `match`. Only whole
    words count: `No` is not the beginning of `Nothing`; with `words: false` it is. With `verbatim`, every
    character counts.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="answers with a prescribed beginning: yes or no, a label",
    )
    text: str | None = None
    words: bool = True
    verbatim: bool = False

    def needs_expected(self) -> bool:
        return self.text is None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if self.text is not None and not fold(self.text):
            yield "`text` is blank, so every answer would begin with it"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        beginning = context.expected if self.text is None else self.text
        starts = context.response.startswith(beginning) if self.verbatim else self._begins(context.response, beginning)
        value = float(starts)
        notes = f"{'begins' if starts else 'does not begin'} with the expected text"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _begins(self, response: str, beginning: str) -> bool:
        answer, beginning = fold(response), fold(beginning)
        return any(self._starts(text, beginning) for text in (answer, answer.lstrip("\"'`*_ "), bare(answer)))

    def _starts(self, text: str, beginning: str) -> bool:
        if not text.startswith(beginning):
            return False
        # Of what follows, one character decides whether the word goes on; digits may go on after a point.
        return not self.words or find_word(beginning, text[: len(beginning) + 3])
