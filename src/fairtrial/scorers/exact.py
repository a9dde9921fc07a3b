"""`exact`: how near is the answer to the expected text? Graded, with credit for near misses."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer

_TOO_LONG = 10**10  # about a second of work, which nobody else can use


class Exact(Scorer, frozen=True, kw_only=True):
    """Identical 1; other case 0.95; contained 0.60 to 0.95 by the share of extra text; else by similarity.

    Graded, as in Benchmaker: a wrong answer that looks like the right one has a share of the points (`1945` for `1944`
    52, `-42` for `42` 83). For plain accuracy use `match`.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="nearness to a text, comparable with Benchmaker's exact match; accuracy is `match`",
    )

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        response, expected = context.response.strip(), context.expected
        if len(response) * len(expected) > _TOO_LONG and expected.casefold() not in response.casefold():
            return Unscored(kind="size", message="the texts are too long to measure how similar they are")
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
