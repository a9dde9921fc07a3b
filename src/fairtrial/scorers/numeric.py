"""`numeric`: does the answer contain the right number, within a tolerance?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.numbers import Number, find_numbers, read_number
from fairtrial.text.printable import clipped

_MARGIN = 1e-9  # 42.42 is within 1 % of 42 despite binary rounding


class Numeric(Scorer, frozen=True, kw_only=True):
    """Within `tolerance` scores 1; beyond it 1 − √(error/`zero_at`); 0 from `zero_at` on. Errors are relative.

    With `tolerance: 0` the exact number scores 1 and any other 0, whatever `zero_at` is.

    Numbers are read in all common notations: `1,234.5`, `1.234,5`, `1 234,5`, `1'234`, `1_000`, `6.02e23`, `3 × 10⁵`,
    `10^5`, `1/2`, `1 1/2`, `½`, `50%` (50 and 0.5), with any minus sign and digits of any script, and in TeX
    (`\\frac{1}{2}`, `3 \\times 10^5`). If a number in an answer is ambiguous (`1.234`, `1,234`), the better reading
    counts, and the notes say so; `expected` is read in English notation, as programs write numbers.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="calculations, measurements, estimates",
    )
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    zero_at: Annotated[float, msgspec.Meta(gt=0)] = 0.25
    pick: Literal["any", "closest", "last"] = "any"

    def needs_expected(self) -> bool:
        return True

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        text = next(iter(case.accepted), "")
        if not read_number(text):
            yield f"a numeric scorer needs a number as `expected`, not {text!r}"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        expected = read_number(context.expected)
        if not expected:
            return Unscored(kind="expected", message=f"the expected value {context.expected!r} is not a number")
        numbers = find_numbers(context.response)
        if not numbers:
            return Score(value=0.0, raw=0.0, confidence=1.0, notes="no number in the answer")
        # `any` and `closest` are equivalent: a number within the tolerance is always closer than one outside it.
        candidates = numbers[-1:] if self.pick == "last" else numbers
        error, reading, target, number = min(
            (_error(reading, value), reading, value, number)
            for number in candidates
            for reading in number.readings
            for value in expected
        )
        value = self._value(error)
        notes = f"{reading:g}, {error:.2%} off {target:g}{_reading_note(number, reading)}"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _value(self, error: float) -> float:
        if self.tolerance == 0:
            return float(error == 0)
        if error <= self.tolerance + _MARGIN:
            return 1.0
        return max(0.0, 1.0 - math.sqrt(error / self.zero_at))


def _reading_note(number: Number, reading: float) -> str:
    """Return a note if the number could also be read as another one."""
    return "" if reading == number.readings[0] else f" (`{clipped(number.text, 40)}` read as {reading:g})"


def _error(got: float, expected: float) -> float:
    difference = abs(got - expected)
    return difference / abs(expected) if expected else difference
