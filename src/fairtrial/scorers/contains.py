"""`contains`: does the answer contain required words, and no forbidden ones?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.folding import find_word, fold
from fairtrial.text.printable import clipped

Words = Annotated[list[str], msgspec.Meta(min_length=1)]
_MAX_LENGTH = 40


class Contains(Scorer, frozen=True, kw_only=True):
    """Scores 1 if the answer has one of `any`, all of `all` and none of `none`, else 0; default: the expected text.

    Case, whitespace and Unicode forms are ignored as in `match`. Only whole words and phrases count: `no` is not in
    `know`, `5` not in `1.5` or `15`, `42` not in `-42`, `C` not in `C++`. With `words: false` they count anywhere, as
    they do in scripts without spaces between words (Chinese, Japanese, Korean, Thai and the like).
    With `verbatim`, every character counts, and they count anywhere.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="answers in a sentence: required and forbidden words",
    )
    any: Words | None = None
    all: Words | None = None
    none: Words | None = None
    words: bool = True
    verbatim: bool = False

    def needs_expected(self) -> bool:
        return self.any is self.all is self.none is None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        for name in ("any", "all", "none"):
            if any(not fold(word) for word in getattr(self, name) or ()):
                yield f"a text in `{name}` is blank, so every answer would contain it"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        text = context.response if self.verbatim else fold(context.response)
        wanted = [context.expected] if self.needs_expected() else self.any or []
        present = {w: self._contains(text, w) for w in (*wanted, *(self.all or ()), *(self.none or ()))}
        reasons = []
        if wanted and not any(present[word] for word in wanted):
            reasons.append(f"does not contain {_listed(wanted, 'or')}")
        if missing := [word for word in self.all or () if not present[word]]:
            reasons.append(f"does not contain {_listed(missing, 'and')}")
        if forbidden := [word for word in self.none or () if present[word]]:
            reasons.append(f"contains forbidden {_listed(forbidden, 'and')}")
        value = float(not reasons)
        matched = _listed([word for word in present if present[word]], "and")
        notes = "; ".join(reasons) or (f"contains {matched}" if matched else "contains no forbidden words")
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _contains(self, text: str, word: str) -> bool:
        return word in text if self.verbatim else find_word(fold(word), text, whole=self.words)


def _listed(words: Sequence[str], joint: str) -> str:
    return f" {joint} ".join(repr(clipped(word, _MAX_LENGTH)) for word in words)
