"""Anytime-valid inference for bounded differences: valid however often one looks, whatever their distribution.

This is the hedged capital process of Waudby-Smith and Ramdas: bets are placed against every candidate mean, on either
side, with stakes that depend only on earlier data. If the candidate is the true mean, the capital stays below 1/α for
ever with probability 1 − α. So the candidates against which the capital never reached 1/α are a confidence set at all
times.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_GRID = 401  # number of candidates; the interval is rounded outwards to them
_NEAR = 0.00025  # share of the scale: extra candidates this close to the points that decisions depend on
_MOST = 0.75  # the largest share of the capital that one bet can lose


class BettingSequence(msgspec.Struct, frozen=True, kw_only=True):
    """The result over all moments so far. p-values are valid whenever one stops."""

    mean: float
    interval: tuple[float, float] | None  # None where no candidate is left: the data contradict themselves
    middle: float | None  # of the interval: closer to the truth than the mean, which is too extreme at stopping
    p_above: float  # evidence that the mean is above 0
    p_below: float
    count: int
    alpha: float


class Bets:
    """The betting process for differences that arrive one by one, with constant memory and time per difference."""

    def __init__(
        self, *, alpha: float = 0.05, bounds: tuple[float, float] = (-1.0, 1.0), points: tuple[float, ...] = ()
    ) -> None:
        self.alpha, self._low, self._width = alpha, bounds[0], bounds[1] - bounds[0]
        tracked = sorted({point for point in (0.0, *points) if bounds[0] <= point <= bounds[1]})
        extra = [self._inside(point) + near for point in tracked for near in (-_NEAR, 0.0, _NEAR)]
        self._candidates = np.unique(np.clip(np.r_[np.linspace(0, 1, _GRID), extra], 0.0, 1.0))
        self._places = {point: int(np.searchsorted(self._candidates, self._inside(point))) for point in tracked}
        self._up, self._down = np.zeros(len(self._candidates)), np.zeros(len(self._candidates))  # logs of capitals
        self._best_up, self._best_down = self._up.copy(), self._down.copy()
        with np.errstate(divide="ignore"):  # the candidates include 0 and 1
            self._most_up, self._most_down = _MOST / self._candidates, _MOST / (1 - self._candidates)
        self._open = np.full(len(self._candidates), True)
        self.count, self._sum, self._squares = 0, 0.0, 0.0

    def _inside(self, d: float) -> float:
        """Rescale a value to 0–1."""
        return (d - self._low) / self._width

    def _outside(self, x: float) -> float:
        return self._low + self._width * x

    def add(self, d: float) -> None:
        """Add one difference: choose the stakes from earlier data, then settle the bets."""
        x = min(1.0, max(0.0, self._inside(d)))
        t = self.count + 1
        middle = (0.5 + self._sum) / t
        variance = (0.25 + self._squares) / t
        stake = math.sqrt(2 * math.log(2 / self.alpha) / (variance * t * math.log(1 + t)))
        above = x - self._candidates
        up = np.minimum(stake, self._most_up) * above
        down = -np.minimum(stake, self._most_down) * above
        up[0], down[-1] = 0.0 if x == 0 else np.inf, 0.0 if x == 1 else np.inf
        self._up += np.log1p(up)
        self._down += np.log1p(down)
        np.maximum(self._best_up, self._up, out=self._best_up)
        np.maximum(self._best_down, self._down, out=self._best_down)
        # Half of the capital bets on each side, so either side has to earn twice as much.
        self._open &= np.maximum(self._up, self._down) < math.log(2 / self.alpha)
        self.count, self._sum = t, self._sum + x
        self._squares += (x - middle) ** 2

    def interval(self) -> tuple[float, float] | None:
        """Return the range of the remaining candidates, rounded outwards to the next candidate; None if none remains.
        It is never rounded onto a requested point that is ruled out: a limit of 0 would say that 0 is still possible.
        """
        remaining = np.flatnonzero(self._open)
        if not len(remaining):
            return None
        return self._limit(int(remaining[0]), -1), self._limit(int(remaining[-1]), 1)

    def _limit(self, last: int, side: int) -> float:
        beyond = last + side
        if not 0 <= beyond < len(self._candidates):
            return self._outside(float(self._candidates[last]))
        if beyond in self._places.values():
            return self._outside(float(self._candidates[last] + self._candidates[beyond]) / 2)
        return self._outside(float(self._candidates[beyond]))

    def p_above(self, point: float = 0.0) -> float:
        """Return the p-value for a mean above a point: 1 over the largest capital that betting on it ever reached."""
        return float(point >= self._low) if self._beyond(point) else self._p(self._best_up, point)

    def p_below(self, point: float = 0.0) -> float:
        """Return the p-value for a mean below a point."""
        return float(point < self._low) if self._beyond(point) else self._p(self._best_down, point)

    def _beyond(self, point: float) -> bool:
        """Return whether a point is outside the bounds, so that no bet is needed on it."""
        return not 0 <= self._inside(point) <= 1

    def _p(self, best: Floats, point: float) -> float:
        return min(1.0, 2 * math.exp(-float(best[self._places[point]])))

    def now(self) -> BettingSequence:
        """Return the current result."""
        bounds = self.interval()
        return BettingSequence(
            mean=self._outside(self._sum / self.count) if self.count else 0.0,
            interval=bounds,
            middle=None if bounds is None else (bounds[0] + bounds[1]) / 2,
            p_above=self.p_above(),
            p_below=self.p_below(),
            count=self.count,
            alpha=self.alpha,
        )


def betting_sequence(
    values: ArrayLike, *, alpha: float = 0.05, bounds: tuple[float, float] = (-1.0, 1.0)
) -> BettingSequence:
    """Return the result after these values, in their order; they must lie within the bounds."""
    bets = Bets(alpha=alpha, bounds=bounds)
    for value in np.asarray(values, dtype=np.float64):
        bets.add(float(value))
    return bets.now()
