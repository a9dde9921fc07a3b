"""`regex`: does the answer match a pattern? Takes `/pattern/flags` and plain patterns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.patterns import PatternError, compile_pattern, search


class Regex(Scorer, frozen=True, kw_only=True):
    """A match anywhere scores 1, no match 0. Without `pattern`, the expected text is the pattern."""

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="formats: ids, dates, a word on its own line",
    )
    pattern: str | None = None
    negate: bool = False
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def needs_expected(self) -> bool:
        return self.pattern is None

    def forbids(self) -> bool:
        return self.negate

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        text = self._text(case)
        if not text:
            yield "a regex scorer needs a pattern: give `expected`, or `pattern` in the scorer"
            return
        try:
            compile_pattern(text)
        except PatternError as error:
            yield f"the pattern {text!r} is not valid: {error}"

    def _text(self, case: Case) -> str:
        return self.pattern if self.pattern is not None else next(iter(case.accepted), "")

    async def score(self, context: ScoreContext) -> Score | Unscored:
        text = self._text(context.case)
        if not text:
            return Unscored(kind="expected", message="no pattern given")
        pattern = compile_pattern(text)
        try:
            match = await search(pattern, context.response, self.timeout)
        except TimeoutError:
            return Unscored(kind="timeout", message=f"pattern timed out after {self.timeout:g} s")
        value = float((match is not None) is not self.negate)
        notes = f"matched {match.group()[:80]!r}" if match else "no match"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)
