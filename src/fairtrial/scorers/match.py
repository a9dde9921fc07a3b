"""`match`: does the answer equal the expected text, ignoring case, whitespace and punctuation?"""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.folding import same_text
from fairtrial.text.json_text import last_json, same_json, unfenced


class Match(Scorer, frozen=True, kw_only=True):
    """The expected text scores 1, any other 0.

    Ignored: case; repeated whitespace and line breaks; Unicode forms (full-width, ligatures, composed accents, digits
    of other scripts, invisible characters); curly or straight quotes, long or short dashes; punctuation (. , ; : ! ? …)
    at the end and before whitespace; quotes, asterisks, underscores and backticks around the whole answer; a bullet;
    brackets around one word. Not ignored: accents, signs, decimal points, symbols: `-42`, `42`, `1.5`, `15`, `$5`,
    `5%`, `C`, `C++`, `C#`, `A`, `A*`, `n!` are all different, and so are `1,000` and `1000` (use `numeric` for
    numbers). An expected JSON object or list is compared as JSON. With `verbatim`, nothing but whitespace around the
    answer is ignored.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="one right answer: names, words, codes, choices; the mean is the accuracy",
    )

    verbatim: bool = False

    def needs_expected(self) -> bool:
        return True

    async def score(self, context: ScoreContext) -> Score | Unscored:
        same = self._same(context)
        value = float(same)
        return Score(value=value, raw=value, confidence=1.0, notes="matches" if same else "does not match")

    def _same(self, context: ScoreContext) -> bool:
        if self.verbatim:
            return context.response.strip() == context.expected.strip()
        return same_text(context.response, context.expected) or _same_json(context.response, context.expected)


def _same_json(response: str, expected: str) -> bool:
    if expected[:1] not in ("{", "["):
        return False
    expected_json, answer_json = last_json(expected, strict=True), last_json(unfenced(response), strict=True)
    return expected_json is not None and answer_json is not None and same_json(answer_json.value, expected_json.value)
