"""What "cannot tell" still says: the arm that is ahead is better, unless some case can lose more than a breakpoint.

The bounded interval allows for an unseen case with the largest loss on the scale. If it lost no more than the
breakpoint, there would be a verdict. That claim is wrong only if the largest possible loss is smaller and the mean is
not above 0, and then the same test on a scale that ends at this loss has rejected what is true.
"""

from __future__ import annotations

import math

import msgspec

from fairtrial.stats import bounded
from fairtrial.stats.mean import Mean
from fairtrial.stats.units import Measured

_WORTH_SAYING = 1.5  # times the largest loss seen
_PRECISE = 1e-7
_ROUNDING = 1e-9


class Breakpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The largest loss of a case with which the arm that is ahead would still be better."""

    points: Measured
    worst_seen: Measured  # the largest loss of a case so far

    @property
    def tells(self) -> bool:
        """Return whether this is far enough beyond what was seen to be worth saying."""
        return self.points >= _WORTH_SAYING * self.worst_seen


def breakpoint_of(mean: Mean, level: float) -> Breakpoint | None:
    """Return the breakpoint of a mean that is not told from 0 at this level; None if t by itself cannot tell either."""
    side = 1 if (mean.mean or 0.0) > 0 else -1
    span = mean.bounds[1]
    if not mean.mean or not mean.exists or not math.isfinite(span) or mean.p_by_t(0.0) >= level:
        return None
    share = level * mean.share_of_level
    worst = max(0.0, float((-side * mean.unit_values).max()))

    def told(loss: float) -> bool:
        values, shapes = mean.with_unseen(-side * loss)
        return bounded.share_is_below(values, shapes, 0.0, side=-side, level=share)

    if not told(worst or _PRECISE * span):
        return None
    low, high = worst, span
    if told(high):
        return Breakpoint(points=span, worst_seen=worst)
    while high - low > _PRECISE * span:
        middle = (low + high) / 2
        low, high = (middle, high) if told(middle) else (low, middle)
    return Breakpoint(points=low, worst_seen=worst)


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """The largest difference that a case can show, as a suite or a command states it, and the largest one seen."""

    largest: Measured
    seen: Measured

    @property
    def holds(self) -> bool:
        """Return whether no case contradicts it; if one does, nothing counts on it."""
        return self.seen <= self.largest * (1 + _ROUNDING)
