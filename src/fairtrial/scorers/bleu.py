"""`bleu`: how many runs of words does a translation share with the expected one?"""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.overlap import bleu_tokens, sentence_bleu


class Bleu(Scorer, frozen=True, kw_only=True):
    """Sentence BLEU with runs of up to four words and exponential smoothing, in the tokens of mteval-v13a.

    As sacreBLEU's `sentence_bleu` computes it; case counts. The mean over cases is not the BLEU of a corpus.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="translations with a reference",
    )

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        value = sentence_bleu(bleu_tokens(context.response), bleu_tokens(context.expected))
        return Score(value=value, raw=value, confidence=1.0, notes=f"BLEU {100 * value:.1f}")
