"""`rouge`: how much of the expected text does the answer cover?"""

from __future__ import annotations

from typing import ClassVar, Literal

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.overlap import rouge_l, rouge_n, terms

_MAX_WORK = 10**9  # product of the numbers of words


class Rouge(Scorer, frozen=True, kw_only=True):
    """ROUGE-L (the longest common subsequence of words), ROUGE-1 or ROUGE-2 (words, pairs of words in common).

    The score is F1, or the `precision` or `recall`. Case and punctuation are ignored; words are not stemmed.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="summaries with a reference",
    )
    variant: Literal["1", "2", "L"] = "L"
    measure: Literal["f1", "precision", "recall"] = "f1"

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        answer, reference = terms(context.response), terms(context.expected)
        if len(answer) * len(reference) > _MAX_WORK:
            return Unscored(kind="size", message="the texts are too long to compare")
        found = rouge_l(answer, reference) if self.variant == "L" else rouge_n(answer, reference, int(self.variant))
        value: float = getattr(found, self.measure)
        notes = f"ROUGE-{self.variant}: precision {found.precision:.2f}, recall {found.recall:.2f}"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)
