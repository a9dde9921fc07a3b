"""`exact`: how similar is the answer to the expected text? Graded, with credit for near misses."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer

_MAX_WORK = 10**10  # product of the lengths: about a second during which nothing else runs


class Exact(Scorer, frozen=True, kw_only=True):
    """Identical scores 1; other case 0.95; contained 0.60 to 0.95 by the share of extra text; else by similarity.

    Graded as in Benchmaker: a wrong answer that looks like the right one gets some of the points (`1945` for `1944`
    gets 52, `-42` for `42` gets 83). For plain accuracy use `match`.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="similarity to a text, comparable with Benchmaker's exact match; for accuracy use `match`",
    )

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        response, expected = context.response.strip(), context.expected
        if len(response) * len(expected) > _MAX_WORK and expected.casefold() not in response.casefold():
            return Unscored(kind="size", message="the texts are too long to compute their similarity")
        value, notes = _compare(response, expected)
        return Score(value=value, raw=value, confidence=1.0, notes=notes)


def _compare(response: str, expected: str) -> tuple[float, str]:
    if response == expected:
        return 1.0, "identical"
    folded, wanted = response.casefold(), expected.casefold()
    if folded == wanted:
        return 0.95, "identical ignoring case"
    if expected in response:
        extra = 1 - len(expected) / len(response)
        return max(0.60, 0.95 - 0.35 * extra), f"contained, {extra:.0%} extra text"
    if wanted in folded:
        extra = max(0.0, 1 - len(expected) / len(response))
        return max(0.55, 0.90 - 0.35 * extra), f"contained ignoring case, {extra:.0%} extra text"
    return _similar(response, expected)


def _similar(response: str, expected: str) -> tuple[float, str]:
    from rapidfuzz.distance import Levenshtein

    similarity = Levenshtein.normalized_similarity(response, expected)
    note = f"similarity {similarity:.2f}"
    if similarity > 0.5:
        return 0.7 * similarity, note
    if similarity > 0.2:
        return 0.4 * similarity, note
    return 0.0, note
