"""`length`: is the answer long enough, and not too long?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
import regex

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.scorers._limits import bound_problems, within

Unit = Literal["characters", "words", "lines", "sentences"]
# A word is a run of letters and digits; in scripts without spaces, every character is one.
_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|[\p{L}\p{M}\p{N}]+(?:['’.,\-‑][\p{L}\p{M}\p{N}]+)*"
)
_SENTENCE = regex.compile(r"[^.!?…。！？\s][^.!?…。！？]*(?:[.!?…](?!\s|$|[\"'”’)\]])[^.!?…。！？]*)*[.!?…。！？]*")


class Length(Scorer, frozen=True, kw_only=True):
    """An answer of `min` to `max` characters, words, lines or sentences scores 1, any other 0.

    Blank lines and blanks around the answer do not count. A sentence ends with . ! ? or … before a blank.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="limits that a prompt sets: at most 50 words, exactly 3 lines",
    )
    min: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    unit: Unit = "characters"

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return bound_problems("length", self.min, self.max)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        count = count_units(context.response, self.unit)
        return within(count, self.min, self.max, f"{count} {self.unit}")


def count_units(text: str, unit: Unit) -> int:
    """Return the length of a text."""
    text = text.strip()
    if unit == "characters":
        return len(text)
    if unit == "lines":
        return sum(bool(line.strip()) for line in text.splitlines())
    return len((_WORD if unit == "words" else _SENTENCE).findall(text))
