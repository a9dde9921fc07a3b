"""`match`: is the answer the expected one, whatever its capitals, blanks and punctuation?"""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.folding import same_text
from fairtrial.core.json_text import last_json, same_json, unfenced
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer


class Match(Scorer, frozen=True, kw_only=True):
    """The same text 1, any other 0.

    Not told apart: capitals; runs of blanks and line ends; Unicode forms (full-width, ligatures, composed accents,
    digits of other scripts, invisible characters); curly and straight quotes, long and short dashes; sentence marks
    (. , ; : ! ? …) at the end and before blanks; quotes, stars, underscores and backticks around the whole; a bullet;
    brackets around one word. Told apart: accents, signs, decimal points, symbols: `-42`, `42`, `1.5`, `15`, `$5`, `5%`,
    `C`, `C++`, `C#`, `A`, `A*`, `n!` are all different, and so are `1,000` and `1000` (numbers are for `numeric`).
    An expected JSON object or list is compared as JSON.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="one right answer: names, words, codes, choices; the mean is the accuracy",
    )

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        same = same_text(context.response, context.expected) or _same_json(context.response, context.expected)
        value = float(same)
        return Score(value=value, raw=value, confidence=1.0, notes="matches" if same else "does not match")


def _same_json(response: str, expected: str) -> bool:
    if expected[:1] not in ("{", "["):
        return False
    wanted, given = last_json(expected, strict=True), last_json(unfenced(response), strict=True)
    return wanted is not None and given is not None and same_json(given.value, wanted.value)
