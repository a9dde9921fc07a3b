"""Looking as often as one likes, for bounded differences: valid at every moment, whatever their distribution.

The hedged capital process of Waudby-Smith and Ramdas: for every candidate mean somebody bets against it, on either
side, with stakes that depend only on what was seen before. If the candidate is the truth, the capital stays below 1/α
for ever with probability 1 − α. So the candidates that nobody has got rich against are a confidence set at all times.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_GRID = 401  # candidates; the interval is rounded outwards to them
_NEAR = 0.00025  # of the scale: more candidates beside the points that decisions are about
_MOST = 0.75  # of the capital that can be lost in one bet


class BettingSequence(msgspec.Struct, frozen=True, kw_only=True):
    """What all moments so far say together. p-values hold at whatever moment one stops."""

    mean: float
    interval: tuple[float, float] | None  # None where no candidate is left: what was seen contradicts itself
    middle: float | None  # of the interval: nearer to the truth than the mean, which was high when one stopped
    p_above: float  # evidence that the mean is above 0
    p_below: float
    count: int
    alpha: float


class Bets:
    """The process for differences that come one by one. Memory and time for each do not grow."""

    def __init__(
        self, *, alpha: float = 0.05, bounds: tuple[float, float] = (-1.0, 1.0), points: tuple[float, ...] = ()
    ) -> None:
        self.alpha, self._low, self._width = alpha, bounds[0], bounds[1] - bounds[0]
        told = sorted({point for point in (0.0, *points) if bounds[0] <= point <= bounds[1]})
        extra = [self._inside(point) + near for point in told for near in (-_NEAR, 0.0, _NEAR)]
        self._candidates = np.unique(np.clip(np.r_[np.linspace(0, 1, _GRID), extra], 0.0, 1.0))
        self._places = {point: int(np.searchsorted(self._candidates, self._inside(point))) for point in told}
        self._up, self._down = np.zeros(len(self._candidates)), np.zeros(len(self._candidates))  # logs of capitals
        self._best_up, self._best_down = self._up.copy(), self._down.copy()
        self._open = np.full(len(self._candidates), True)
        self.count, self._sum, self._squares = 0, 0.0, 0.0

    def _inside(self, d: float) -> float:
        """A value as a number from 0 to 1."""
        return (d - self._low) / self._width

    def _outside(self, x: float) -> float:
        return self._low + self._width * x

    def add(self, d: float) -> None:
        """One more difference: bets are settled, then new stakes are chosen."""
        x = min(1.0, max(0.0, self._inside(d)))
        t = self.count + 1
        middle = (0.5 + self._sum) / t
        variance = (0.25 + self._squares) / t
        stake = math.sqrt(2 * math.log(2 / self.alpha) / (variance * t * math.log(1 + t)))
        m = self._candidates
        with np.errstate(divide="ignore"):
            up = np.minimum(stake, _MOST / m)
            down = np.minimum(stake, _MOST / (1 - m))
        self._up += np.log1p(np.where(m > 0, up * (x - m), 0.0 if x == 0 else np.inf))
        self._down += np.log1p(np.where(m < 1, -down * (x - m), 0.0 if x == 1 else np.inf))
        np.maximum(self._best_up, self._up, out=self._best_up)
        np.maximum(self._best_down, self._down, out=self._best_down)
        # Half of the money bets on each side, so either has to earn twice as much.
        self._open &= np.maximum(self._up, self._down) < math.log(2 / self.alpha)
        self.count, self._sum = t, self._sum + x
        self._squares += (x - middle) ** 2

    def interval(self) -> tuple[float, float] | None:
        """The candidates that are left, rounded outwards to the next; None where none is.

        Never onto a point that was asked for and is ruled out: a limit of 0 would say that 0 is still possible.
        """
        left = np.flatnonzero(self._open)
        if not len(left):
            return None
        return self._limit(int(left[0]), -1), self._limit(int(left[-1]), 1)

    def _limit(self, last: int, side: int) -> float:
        beyond = last + side
        if not 0 <= beyond < len(self._candidates):
            return self._outside(float(self._candidates[last]))
        if beyond in self._places.values():
            return self._outside(float(self._candidates[last] + self._candidates[beyond]) / 2)
        return self._outside(float(self._candidates[beyond]))

    def p_above(self, point: float = 0.0) -> float:
        """How far it can be believed that the mean is above a point: 1 over the most that betting on it ever won."""
        return float(point >= self._low) if self._beyond(point) else self._p(self._best_up, point)

    def p_below(self, point: float = 0.0) -> float:
        """The same for below."""
        return float(point < self._low) if self._beyond(point) else self._p(self._best_down, point)

    def _beyond(self, point: float) -> bool:
        """No bet is needed on a point that no mean can have."""
        return not 0 <= self._inside(point) <= 1

    def _p(self, best: Floats, point: float) -> float:
        return min(1.0, 2 * math.exp(-float(best[self._places[point]])))

    def now(self) -> BettingSequence:
        """As it stands."""
        found = self.interval()
        return BettingSequence(
            mean=self._outside(self._sum / self.count) if self.count else 0.0,
            interval=found,
            middle=None if found is None else (found[0] + found[1]) / 2,
            p_above=self.p_above(),
            p_below=self.p_below(),
            count=self.count,
            alpha=self.alpha,
        )


def betting_sequence(
    values: ArrayLike, *, alpha: float = 0.05, bounds: tuple[float, float] = (-1.0, 1.0)
) -> BettingSequence:
    """The sequence after these values, in their order; they lie within the bounds."""
    bets = Bets(alpha=alpha, bounds=bounds)
    for value in np.asarray(values, dtype=np.float64):
        bets.add(float(value))
    return bets.now()
