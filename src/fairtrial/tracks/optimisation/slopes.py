"""Values and gradients of formulas at a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtrial.tracks.optimisation.arrays import FormulaError
from fairtrial.tracks.optimisation.formula import FUNCTIONS, Interpreter

Floats = NDArray[np.float64]


def formula_value(text: str, x: Floats) -> float:
    """Return the value at a point; not a number where it is not defined."""
    try:
        return float(Interpreter({"x": x}, FUNCTIONS).value(text))
    except FormulaError:
        return math.nan


def formula_gradient(text: str, x: Floats) -> Floats:
    """Return the gradient at a point; not numbers where it is not defined."""
    points = np.empty(len(x), dtype=object)
    points[:] = [Slope(float(value), unit) for value, unit in zip(x, np.eye(len(x)), strict=True)]
    try:
        value = Interpreter({"x": points}, _FUNCTIONS).value(text)
    except FormulaError:
        return np.full(len(x), math.nan)
    return value.slope if isinstance(value, Slope) else np.zeros(len(x))


class Slope:
    """A number and its derivatives with respect to all variables."""

    __slots__ = ("slope", "value")

    def __init__(self, value: float, slope: Floats) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> Slope:
        value, slope = _parts(other)
        return Slope(self.value + value, self.slope + slope)

    __radd__ = __add__

    def __neg__(self) -> Slope:
        return Slope(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Slope:
        value, slope = _parts(other)
        return Slope(self.value - value, self.slope - slope)

    def __rsub__(self, other: float) -> Slope:
        return Slope(other - self.value, -self.slope)

    def __mul__(self, other: Any) -> Slope:
        value, slope = _parts(other)
        return Slope(self.value * value, self.slope * value + self.value * slope)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Slope:
        value, slope = _parts(other)
        return Slope(self.value / value, (self.slope * value - self.value * slope) / (value * value))

    def __rtruediv__(self, other: float) -> Slope:
        return Slope(other / self.value, -other * self.slope / (self.value * self.value))

    def __pow__(self, power: float) -> Slope:
        if self.value < 0 and not float(power).is_integer():
            raise ValueError("a root of a negative number")
        return Slope(self.value**power, power * self.value ** (power - 1) * self.slope)


def _parts(other: Any) -> tuple[float, Any]:
    return (other.value, other.slope) if isinstance(other, Slope) else (other, 0.0)


_DERIVATIVES: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": lambda value: 1 / value,
    "sqrt": lambda value: 0.5 / math.sqrt(value),
    "sin": math.cos,
    "cos": lambda value: -math.sin(value),
    "abs": lambda value: math.copysign(1.0, value),
}


def _with_slope(name: str) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        if not isinstance(value, Slope):
            return FUNCTIONS[name](value)
        return Slope(FUNCTIONS[name](value.value), _DERIVATIVES[name](value.value) * value.slope)

    return apply


_FUNCTIONS = {name: _with_slope(name) for name in FUNCTIONS}
