"""`numeric`: the right number, within a tolerance, wherever it stands in the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.suite import Case

# A sign counts only where it cannot be a dash between two numbers: "10-5" is 10 and 5.
_NUMBER = re.compile(
    r"""(?P<sign>(?<![\w.)\]])[-+])?
        (?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?      # 1,234.5
          |\d+(?:_\d+)+(?:\.\d+)?                     # 1_000
          |\d+\.?\d*|(?<!\.)\.\d+)                           # 42  42.  .5
        (?:[eE](?P<exponent>[-+]?\d+)|\s?[x×*·]\s?10\^\{?(?P<power>[-+]?\d+)\}?)?   # 6.02e23  6.02 × 10^23
        (?P<percent>\s?%)?""",
    re.VERBOSE,
)
_MARGIN = 1e-9  # 42.42 against 42 is inside 1 %, whatever binary fractions say
_DASHES = str.maketrans({"−": "-", "‒": "-", "–": "-", "－": "-"})


class Numeric(Scorer, frozen=True, kw_only=True):
    """Within `tolerance` 1; beyond it 1 − √(error/`zero_at`); 0 from `zero_at` on. Errors are relative."""

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="deterministic",
        best_for="calculations, measurements, estimates",
    )
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    zero_at: Annotated[float, msgspec.Meta(gt=0)] = 0.25
    pick: Literal["any", "closest", "last"] = "any"

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if not read_number(case.expected or ""):
            yield f"a numeric scorer needs a number as `expected`, not {case.expected!r}"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        expected = read_number(context.expected)
        if not expected:
            return Unscored(kind="expected", message=f"the expected value {context.expected!r} is no number")
        found = find_numbers(context.response)
        if not found:
            return Score(value=0.0, raw=0.0, confidence=1.0, notes="no number in the answer")
        # `any` and `closest` agree: a number inside the tolerance is never farther than one outside it.
        candidates = found[-1:] if self.pick == "last" else found
        error, number, wanted = min(
            (_error(reading, value), reading, value)
            for readings in candidates
            for reading in readings
            for value in expected
        )
        value = self._value(error)
        return Score(value=value, raw=value, confidence=1.0, notes=f"{number:g}, {error:.2%} off {wanted:g}")

    def _value(self, error: float) -> float:
        if error <= self.tolerance + _MARGIN:
            return 1.0
        return max(0.0, 1.0 - math.sqrt(error / self.zero_at))


def _error(got: float, expected: float) -> float:
    difference = abs(got - expected)
    return difference / abs(expected) if expected else difference


def read_number(text: str) -> tuple[float, ...]:
    """The readings of a text that is one finite number, as people write it; none if it is anything else."""
    match = _NUMBER.fullmatch(text.strip().translate(_DASHES))
    readings = _readings(match) if match else ()
    return readings if all(map(math.isfinite, readings)) else ()


def find_numbers(text: str) -> list[tuple[float, ...]]:
    """Every number in a text; `50%` can be read as 50 and as 0.5."""
    return [_readings(match) for match in _NUMBER.finditer(text.translate(_DASHES))]


def _readings(match: re.Match[str]) -> tuple[float, ...]:
    digits = match["digits"].replace(",", "").replace("_", "")
    exponent = match["exponent"] or match["power"] or "0"
    number = float(f"{digits}e{exponent}") * (-1 if match["sign"] == "-" else 1)
    return (number, number / 100) if match["percent"] else (number,)
