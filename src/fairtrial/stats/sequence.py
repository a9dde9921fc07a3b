"""The asymptotic confidence sequence: an interval that is valid at all times at once, given many differences.

It needs differences that are not too rare or skewed (`betting` is valid whatever their distribution).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike


class Sequence(msgspec.Struct, frozen=True, kw_only=True):
    """The current interval; with probability 1 − α the truth was in all intervals so far."""

    mean: float
    interval: tuple[float, float] | None
    p_value: float | None  # valid whenever one stops; None if nothing varies
    count: int
    alpha: float
    best_at: int  # the number of differences for which it is narrowest


def confidence_sequence(d: ArrayLike, *, alpha: float = 0.05, best_at: int = 100) -> Sequence:
    """Return the confidence sequence of the mean of differences, after Waudby-Smith and others."""
    values = np.asarray(d, dtype=np.float64)
    n = len(values)
    if n == 0:
        raise ValueError("no differences")
    mean = float(values.mean())
    interval, p_value = None, None
    if n > 1:
        rho2 = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / best_at
        spread = float(np.std(values, ddof=1))
        half = spread * math.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * math.log(math.sqrt(n * rho2 + 1) / alpha))
        interval = (mean - half, mean + half)
        if spread > 0:
            # The smallest level whose interval, with the same ρ, excludes 0: the formula above solved for the level.
            away = (mean / spread) ** 2 * n**2 * rho2 / (2 * (n * rho2 + 1))
            p_value = min(1.0, math.sqrt(n * rho2 + 1) * math.exp(-away))
    return Sequence(mean=mean, interval=interval, p_value=p_value, count=n, alpha=alpha, best_at=best_at)
