"""`similar`: do the answer and the expected text mean the same, by the cosine of their embeddings?"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.answer import Failure
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer


class Similar(Scorer, frozen=True, kw_only=True):
    """The cosine of the embeddings of the answer and the expected text; below 0 it counts as 0.

    `embedder` is a model of `google:`, `azure:`, `mistral:` or `bedrock:`, or of a server with OpenAI's `/embeddings`,
    such as `openai:text-embedding-3-small`, `ollama:nomic-embed-text` or one under `providers`; or the embedded model
    (`local:smollm2`), which is made for chats: it tells topics apart, but hardly whether a fact is right. `mock:echo`
    only counts words. What it costs counts against the budget. Cosines of unrelated texts differ from model to model:
    set a `threshold` only after a look at some scores.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="as the embedder, nearly exact",
        best_for="open answers with a reference, where other words may say the same",
    )
    embedder: Annotated[str, msgspec.Meta(min_length=1)]

    def needs_expected(self) -> bool:
        return True

    def embedders(self) -> frozenset[str]:
        return frozenset({self.embedder})

    async def score(self, context: ScoreContext) -> Score | Unscored:
        if not context.response.strip():
            return Score(value=0.0, raw=0.0, confidence=1.0, notes="the answer is empty")
        if context.embed is None:
            return Unscored(kind="embedder", message="no model for embeddings is available here")
        texts = (context.response, context.expected)
        vectors = await asyncio.gather(*(context.embed(self.embedder, text) for text in texts))
        for vector in vectors:
            if isinstance(vector, Failure):
                return Unscored(kind="embedder", message=vector.message, retryable=vector.retryable)
        cosine = _cosine(*vectors)  # type: ignore[arg-type]  # no failure is left
        if cosine is None:
            return Unscored(kind="embedder", message=f"the embeddings of {self.embedder} cannot be compared")
        value = min(1.0, max(0.0, cosine))
        return Score(value=value, raw=cosine, notes=f"cosine {cosine:.3f}")


def _cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the cosine of two vectors; None if they have no direction or not the same length."""
    lengths = math.hypot(*one) * math.hypot(*other)
    if len(one) != len(other) or not lengths or not math.isfinite(lengths):
        return None
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths
