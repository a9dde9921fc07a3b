"""`contains`: does the answer have these words, or none of those?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.folding import find_word, fold
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.text import clipped

Words = Annotated[list[str], msgspec.Meta(min_length=1)]
_LONGEST = 40


class Contains(Scorer, frozen=True, kw_only=True):
    """One of `any`, all of `all` and none of `none` in the answer 1, else 0; without the three, the expected text.

    Capitals, blanks and Unicode forms are folded as in `match`. A word or phrase counts where it stands by itself: `no`
    is not in `know`, `5` not in `1.5` or `15`, `42` not in `-42`, `C` not in `C++`. `words: false` takes it anywhere.
    In scripts without blanks between words (Chinese, Japanese, Korean, Thai and the like) it counts anywhere.
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

    def needs_expected(self) -> bool:
        return self.any is self.all is self.none is None

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        for name in ("any", "all", "none"):
            if any(not fold(word) for word in getattr(self, name) or ()):
                yield f"a text in `{name}` is blank: every answer contains it"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        text = fold(context.response)
        wanted = [context.expected] if self.needs_expected() else self.any or []
        has = {w: self._in(text, w) for w in (*wanted, *(self.all or ()), *(self.none or ()))}
        reasons = []
        if wanted and not any(has[word] for word in wanted):
            reasons.append(f"without {_listed(wanted, 'or')}")
        if missing := [word for word in self.all or () if not has[word]]:
            reasons.append(f"without {_listed(missing, 'and')}")
        if found := [word for word in self.none or () if has[word]]:
            reasons.append(f"with {_listed(found, 'and')}")
        value = float(not reasons)
        there = _listed([word for word in has if has[word]], "and")
        notes = "; ".join(reasons) or (f"contains {there}" if there else "contains nothing that it must not")
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _in(self, text: str, word: str) -> bool:
        return find_word(fold(word), text, whole=self.words)


def _listed(words: Sequence[str], joint: str) -> str:
    return f" {joint} ".join(repr(clipped(word, _LONGEST)) for word in words)
