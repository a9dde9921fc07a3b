"""`f1`: how many words do the answer and the expected text have in common?"""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.overlap import squad_tokens, token_f1


class F1(Scorer, frozen=True, kw_only=True):
    """The harmonic mean of precision (the share of the answer's words that are expected) and recall (the reverse).

    As in SQuAD: case, punctuation and the articles a, an, the are ignored; the order of the words does not count.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="short answers to questions about a text, comparable with SQuAD",
    )

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        found = token_f1(squad_tokens(context.response), squad_tokens(context.expected))
        notes = f"precision {found.precision:.2f}, recall {found.recall:.2f}"
        return Score(value=found.f1, raw=found.f1, confidence=1.0, notes=notes)
