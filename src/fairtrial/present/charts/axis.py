"""Axes with ticks in steps of 1, 2 or 5, from the data they show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_STEPS = (1.0, 2.0, 5.0, 10.0)


class Axis(NamedTuple):
    """A range with its ticks; positions on it are percentages."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, at an end if it lies outside."""
        low, high, value = (self._scaled(one) for one in (self.low, self.high, value))
        return 100 * min(1.0, max(0.0, (value - low) / ((high - low) or 1.0)))

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low * 1e-3)) if self.log else value

    def words(self, value: float, *, signed: bool = False) -> str:
        """Format a tick."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 and not self.log else abs(value) or 1.0
        digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
        shown = f"{value:{'+' if signed and value else ''},.{min(digits, 6)}f}" if abs(value) < 1e7 else f"{value:.0e}"
        return shown.replace("-", "−")


def linear_axis(
    values: Iterable[float],
    *,
    include: Sequence[float] = (),
    within: tuple[float, float] | None = None,
    least: float = 0.0,
    most: int = 6,
) -> Axis:
    """Return an axis that covers the values, from tick to tick; it covers at least `least`, and stays `within`."""
    shown = [value for value in [*values, *include] if math.isfinite(value)]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    if (room := least - (high - low)) > 0:
        low, high = low - room / 2, high + room / 2
    if high == low:
        low, high = low - 0.5, high + 0.5
    step = _step((high - low) / max(1, most - 1))
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
        if high - low < step:
            low, high = within
    first = math.ceil(low / step - 1e-9)
    ticks = tuple(round(step * n, 10) + 0.0 for n in range(first, math.floor(high / step + 1e-9) + 1))
    return Axis(low, high, ticks)


def log_axis(values: Iterable[float]) -> Axis:
    """Return a logarithmic axis; values that are not positive are ignored."""
    shown = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.floor(math.log10(min(shown)) * 3 - 0.3) / 3, math.ceil(math.log10(max(shown)) * 3 + 0.3) / 3
    ends = 10**low, 10**high
    decades = range(math.floor(low), math.ceil(high) + 1)
    factors = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [factor * 10.0**power for power in decades for factor in factors]
    inside = tuple(tick for tick in ticks if ends[0] * 0.999 <= tick <= ends[1] * 1.001)
    return Axis(ends[0], ends[1], inside[:: max(1, math.ceil(len(inside) / 7))], log=True)


def _step(width: float) -> float:
    """Return the smallest step of 1, 2 or 5 times a power of ten that is not below a width."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in _STEPS if factor * power >= width * (1 - 1e-9))
