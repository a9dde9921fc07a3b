"""Looking as often as one likes: an interval that holds at every moment at once."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike


class Sequence(msgspec.Struct, frozen=True, kw_only=True):
    """The interval at this moment; with probability 1 − α the truth was in all of them so far."""

    mean: float
    interval: tuple[float, float] | None
    p_value: float | None  # holds at whatever moment one stops; None where nothing varies
    count: int
    alpha: float
    best_at: int  # the number of differences for which it is narrowest


class RunningSequence:
    """The same for differences that come one by one: three numbers, whatever their count."""

    def __init__(self, *, alpha: float = 0.05, best_at: int = 100) -> None:
        self.alpha, self.best_at = alpha, best_at
        self.count, self.mean, self._squares = 0, 0.0, 0.0
        self._rho2 = _rho2(alpha, best_at)

    def add(self, d: float) -> None:
        """One more difference (Welford's update)."""
        self.count += 1
        away = d - self.mean
        self.mean += away / self.count
        self._squares += away * (d - self.mean)

    def now(self, among: int = 1) -> Sequence:
        """As it stands. With `among` sequences watched at once, the interval is at α/among: all hold together."""
        spread = math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else 0.0
        return _sequence(self.mean, spread, self.count, self.alpha, self.best_at, self._rho2, among)


def confidence_sequence(d: ArrayLike, *, alpha: float = 0.05, best_at: int = 100, among: int = 1) -> Sequence:
    """The asymptotic confidence sequence of the mean of differences (Waudby-Smith and others), at its last moment."""
    values = np.asarray(d, dtype=np.float64)
    if len(values) == 0:
        raise ValueError("no differences")
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return _sequence(float(values.mean()), spread, len(values), alpha, best_at, _rho2(alpha, best_at), among)


def whole_sequence(d: ArrayLike, *, alpha: float = 0.05, best_at: int = 100, first: int = 50) -> Sequence:
    """What all moments since the `first` difference say together: the truth is in all intervals, so in what they share.

    Where they share nothing, or there are fewer differences, the last moment counts.
    """
    values = np.asarray(d, dtype=np.float64)
    last = confidence_sequence(values, alpha=alpha, best_at=best_at)
    if len(values) < max(2, first):
        return last
    n = np.arange(1, len(values) + 1)
    means = np.cumsum(values) / n
    squares = np.maximum(0.0, np.cumsum((values - means[-1]) ** 2) - n * (means - means[-1]) ** 2)
    spreads = np.sqrt(squares / np.maximum(1, n - 1))
    moments = [
        _sequence(float(means[k]), float(spreads[k]), k + 1, alpha, best_at, _rho2(alpha, best_at), 1)
        for k in range(max(2, first) - 1, len(values))
    ]
    low = max(found.interval[0] for found in moments if found.interval)
    high = min(found.interval[1] for found in moments if found.interval)
    known = [found.p_value for found in moments if found.p_value is not None]
    return Sequence(
        mean=last.mean,
        interval=(low, high) if low <= high else last.interval,
        p_value=min(known) if known else None,
        count=last.count,
        alpha=alpha,
        best_at=best_at,
    )


def _rho2(alpha: float, best_at: int) -> float:
    return (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / best_at


def _sequence(mean: float, spread: float, n: int, alpha: float, best_at: int, rho2: float, among: int) -> Sequence:
    interval, p_value = None, None
    if n > 1:
        level = alpha / among
        half = spread * math.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * math.log(math.sqrt(n * rho2 + 1) / level))
        interval = (mean - half, mean + half)
        if spread > 0:
            # The smallest level whose interval, with the same ρ, leaves 0 out: the formula above, solved for it.
            away = (mean / spread) ** 2 * n**2 * rho2 / (2 * (n * rho2 + 1))
            p_value = min(1.0, math.sqrt(n * rho2 + 1) * math.exp(-away))
    return Sequence(mean=mean, interval=interval, p_value=p_value, count=n, alpha=alpha, best_at=best_at)
