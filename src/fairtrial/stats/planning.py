"""Before a run: how many cases it takes to see a difference, and what can be seen with those there are."""

from __future__ import annotations

import math

from fairtrial.stats.distributions import normal_quantile


def power(sd: float, delta: float, *, alpha: float = 0.05, beta: float = 0.2) -> int:
    """How many cases it takes to see a difference of `delta` with probability 1 − beta: (z_α/2 + z_β)²·sd²/δ²."""
    if delta == 0:
        raise ValueError("no number of cases shows a difference of 0")
    return max(2, math.ceil(_factor(alpha, beta) ** 2 * sd**2 / delta**2))


def detectable(sd: float, n: int, *, alpha: float = 0.05, beta: float = 0.2) -> float:
    """The smallest difference that n cases show with probability 1 − beta."""
    if n < 1:
        raise ValueError("it takes a case at least")
    return _factor(alpha, beta) * sd / math.sqrt(n)


def _factor(alpha: float, beta: float) -> float:
    return normal_quantile(1 - alpha / 2) + normal_quantile(1 - beta)
