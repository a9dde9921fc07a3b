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
_MOST_UNSETTLED = 1000  # bounds the memory
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


class _Capitals:
    """What bets against candidates for the mean have earned: one row of bets that it is above, one that it is below."""

    def __init__(self, candidates: Floats) -> None:
        self.candidates = candidates
        self._signed = np.stack([candidates, -candidates])
        with np.errstate(divide="ignore"):  # the candidates may include 0 and 1
            self._most = _MOST / np.stack([candidates, 1 - candidates])
        self._certain = list(zip(*np.nonzero(np.isinf(self._most)), strict=True))
        self._logs = np.zeros((2, len(candidates)))
        self.best = self._logs.copy()

    def settle(self, x: float, stake: float) -> None:
        """Settle the bets on one value."""
        won = np.minimum(stake, self._most) * (np.array([[x], [-x]]) - self._signed)
        for place in self._certain:  # that the mean is 0 or 1 is refuted by any other value
            won[place] = np.inf if won[place] > 0 else 0.0
        self._logs += np.log1p(won, out=won)
        np.maximum(self.best, self._logs, out=self.best)


class Bets:
    """The betting process for differences that arrive one by one, with constant memory and time per difference."""

    def __init__(
        self, *, alpha: float = 0.05, bounds: tuple[float, float] = (-1.0, 1.0), points: tuple[float, ...] = ()
    ) -> None:
        self.alpha, self._low, self._width = alpha, bounds[0], bounds[1] - bounds[0]
        tracked = sorted({point for point in (0.0, *points) if bounds[0] <= point <= bounds[1]})
        extra = [self._inside(point) + near for point in tracked for near in (-_NEAR, 0.0, _NEAR)]
        self._grid = _Capitals(np.unique(np.clip(np.r_[np.linspace(0, 1, _GRID), extra], 0.0, 1.0)))
        places = [int(np.searchsorted(self._grid.candidates, self._inside(point))) for point in tracked]
        self._tracked = _Capitals(self._grid.candidates[places])
        self._order = {point: number for number, point in enumerate(tracked)}
        self._places = set(places)
        self._unsettled: list[tuple[float, float]] = []  # on the grid, which only the interval is read off
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
        self._tracked.settle(x, stake)
        self._unsettled.append((x, stake))
        if len(self._unsettled) == _MOST_UNSETTLED:
            self._settle()
        self.count, self._sum = t, self._sum + x
        self._squares += (x - middle) ** 2

    def _settle(self) -> None:
        for x, stake in self._unsettled:
            self._grid.settle(x, stake)
        self._unsettled.clear()

    def interval(self) -> tuple[float, float] | None:
        """Return the range of the remaining candidates, rounded outwards to the next candidate; None if none remains.
        It is never rounded onto a requested point that is ruled out: a limit of 0 would say that 0 is still possible.
        """
        self._settle()
        # Half of the capital bets on each side, so either side has to earn twice as much.
        remaining = np.flatnonzero(self._grid.best.max(axis=0) < math.log(2 / self.alpha))
        if not len(remaining):
            return None
        return self._limit(int(remaining[0]), -1), self._limit(int(remaining[-1]), 1)

    def _limit(self, last: int, side: int) -> float:
        beyond, candidates = last + side, self._grid.candidates
        if not 0 <= beyond < len(candidates):
            return self._outside(float(candidates[last]))
        if beyond in self._places:
            return self._outside(float(candidates[last] + candidates[beyond]) / 2)
        return self._outside(float(candidates[beyond]))

    def p_above(self, point: float = 0.0) -> float:
        """Return the p-value for a mean above a point: 1 over the largest capital that betting on it ever reached."""
        return float(point >= self._low) if self._beyond(point) else self._p(0, point)

    def p_below(self, point: float = 0.0) -> float:
        """Return the p-value for a mean below a point."""
        return float(point < self._low) if self._beyond(point) else self._p(1, point)

    def _beyond(self, point: float) -> bool:
        """Return whether a point is outside the bounds, so that no bet is needed on it."""
        return not 0 <= self._inside(point) <= 1

    def _p(self, side: int, point: float) -> float:
        return min(1.0, 2 * math.exp(-float(self._tracked.best[side, self._order[point]])))

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
