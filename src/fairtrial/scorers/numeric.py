"""`numeric`: the right number, within a tolerance, wherever it stands in the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.numbers import Number, find_numbers, read_number
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.text import clipped

_MARGIN = 1e-9  # 42.42 against 42 is inside 1 %, whatever binary fractions say


class Numeric(Scorer, frozen=True, kw_only=True):
    """Within `tolerance` 1; beyond it 1 − √(error/`zero_at`); 0 from `zero_at` on. Errors are relative.

    With `tolerance: 0` an answer is right or wrong: the very number 1, any other 0, whatever `zero_at` says.

    Numbers are read as people write them: `1,234.5`, `1.234,5`, `1 234,5`, `1'234`, `1_000`, `6.02e23`, `3 × 10⁵`,
    `10^5`, `1/2`, `1 1/2`, `½`, `50%` (50 and 0.5), with any minus sign and digits of any script, and in TeX
    (`\\frac{1}{2}`, `3 \\times 10^5`). Of an answer that can be read in two ways (`1.234`, `1,234`) the better reading
    counts, and the notes say so; `expected` is read as English and programs do.
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
            return Unscored(kind="expected", message=f"the expected value {context.expected!r} is no number")
        found = find_numbers(context.response)
        if not found:
            return Score(value=0.0, raw=0.0, confidence=1.0, notes="no number in the answer")
        # `any` and `closest` agree: a number inside the tolerance is never farther than one outside it.
        candidates = found[-1:] if self.pick == "last" else found
        error, reading, wanted, number = min(
            (_error(reading, value), reading, value, number)
            for number in candidates
            for reading in number.readings
            for value in expected
        )
        value = self._value(error)
        notes = f"{reading:g}, {error:.2%} off {wanted:g}{_how_read(number, reading)}"
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _value(self, error: float) -> float:
        if self.tolerance == 0:
            return float(error == 0)
        if error <= self.tolerance + _MARGIN:
            return 1.0
        return max(0.0, 1.0 - math.sqrt(error / self.zero_at))


def _how_read(number: Number, reading: float) -> str:
    """Said where somebody else might read another number."""
    return "" if reading == number.readings[0] else f" (`{clipped(number.text, 40)}` read as {reading:g})"


def _error(got: float, expected: float) -> float:
    difference = abs(got - expected)
    return difference / abs(expected) if expected else difference
