"""Two samples at once: cases, and wordings of the question that every case is asked in.

A difference between two styles of asking is a difference between their wordings too. Where these are a sample like the
cases, what they vary by is part of the error (Clark's "language as a fixed effect" is leaving it out).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import t_quantile
from fairtrial.stats.mean import ALPHA, Bounds, Mean

Floats = NDArray[np.float64]
_SMALLEST_ALPHA = 1e-12
_STEPS = 90
_CLOSE = 1e-9  # relative error of a distance


class Between(NamedTuple):
    """How much a mean varies because of the wordings that were drawn: its variance, and degrees of freedom of that."""

    variance: float
    freedom: float
    columns: int  # how many wordings

    @property
    def std_err(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)


def between_columns(table: ArrayLike, weights: ArrayLike | None = None) -> Between | None:
    """Return how much the mean of a table varies with its columns (wordings), beyond what its cells vary anyway.

    Rows are cases; a cell without a value is NaN. None if there are not two columns, or too few cells to tell.
    """
    cells = np.asarray(table, dtype=np.float64)
    w = np.ones(len(cells)) if weights is None else np.asarray(weights, dtype=np.float64)
    used = (np.sum(~np.isnan(cells), axis=1) > 1) & (w > 0)
    cells, w = cells[used], w[used]
    cells = cells[:, np.any(~np.isnan(cells), axis=0)] if len(cells) else cells
    rows, columns = cells.shape if cells.ndim == 2 else (0, 0)
    if columns < 2 or rows < 2:
        return None
    there = ~np.isnan(cells)
    centred = cells - np.nanmean(cells, axis=1, keepdims=True)
    mass = np.where(there, w[:, None], 0.0)
    effects = np.nansum(mass * centred, axis=0) / mass.sum(axis=0)
    total = float(np.sum((effects - effects.mean()) ** 2)) / (columns - 1) / columns
    left = np.where(there, centred - effects, 0.0)
    freedom = int(there.sum()) - rows - columns + 1
    if freedom < 1:
        return None
    # What cells vary by anyway is in the variance over cases already; each row counts by its share of the weight.
    noise = float(np.sum(left**2)) / freedom * float(np.sum(w**2)) / float(w.sum()) ** 2 / columns
    return Between(variance=max(0.0, total - noise), freedom=columns - 1.0, columns=columns)


def sum_of(parts: list[Between]) -> Between | None:
    """Return the variance of a difference of means whose wordings were drawn apart, with Welch's degrees of freedom."""
    if len(parts) < 2:
        return parts[0] if parts else None
    variance = sum(part.variance for part in parts)
    squares = sum(part.variance**2 / part.freedom for part in parts)
    freedom = variance**2 / squares if squares > 0 else min(part.freedom for part in parts)
    return Between(variance=variance, freedom=freedom, columns=sum(part.columns for part in parts))


class CrossedMean:
    """A mean over cases whose interval also allows for other wordings.

    The distances of both intervals to the mean are squared and added (Zou and Donner's "variance estimates recovery"),
    so that the one over cases may be of either kind.
    """

    method = "wordings as a random effect"

    def __init__(self, over_cases: Mean, between: Between) -> None:
        self.over_cases, self.between = over_cases, between
        self.mean, self.count = over_cases.mean, over_cases.count
        self._known: dict[tuple[float, int], float] = {}  # alphas found so far

    @property
    def std_err(self) -> float | None:
        """The standard error from both sources."""
        own = self.over_cases.std_err
        return None if own is None else math.hypot(own, self.between.std_err)

    @property
    def _there(self) -> bool:
        return self.over_cases.exists

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return the 1 − alpha interval; None if there is none over cases."""
        return (self._limit(alpha, -1), self._limit(alpha, 1)) if self._there else None

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the largest alpha at which the interval still contains the point."""
        if not self.between.variance or not self._there:
            return self.over_cases.p_value(point)
        return self._reaches(point, -1 if (self.mean or 0.0) > point else 1)

    def p_within(self, margin: float) -> float | None:
        """Return the largest alpha at which the interval still reaches beyond ±margin."""
        if not self.between.variance or not self._there:
            return self.over_cases.p_within(margin)
        return max(self._reaches(-margin, -1), self._reaches(margin, 1))

    def _limit(self, alpha: float, side: int) -> float:
        mean, own = self.mean or 0.0, self.over_cases.limit(alpha, side)
        end, limit = self.over_cases.bounds[side > 0], mean + side * math.hypot(own - mean, self._half(alpha))
        return max(end, limit) if side < 0 else min(end, limit)

    def _half(self, alpha: float) -> float:
        return t_quantile(1 - alpha / 2, self.between.freedom) * self.between.std_err if self.between.variance else 0.0

    def _reaches(self, point: float, side: int) -> float:
        """Return the largest alpha at which the limit on one side still reaches a point."""
        distance = side * (point - (self.mean or 0.0))
        if distance <= 0:
            return 1.0
        if (point, side) not in self._known:
            self._known[point, side] = self._alpha_at(distance, side)
        return self._known[point, side]

    def _alpha_at(self, distance: float, side: int) -> float:
        """Return the alpha at which the limit has this distance to the mean.

        The distance of the limit over cases is searched for (false position, Illinois), as its alpha is known at once.
        """
        low, high, kept = 0.0, distance, 0
        below, above = -distance, math.hypot(distance, self._half(self._alpha(distance, side))) - distance
        for step in range(_STEPS):
            # Every third step halves the bracket: far from the mean the curve is too steep for false position alone.
            middle = (low + high) / 2 if step % 3 == 2 else (low * above - high * below) / (above - below)
            value = math.hypot(middle, self._half(self._alpha(middle, side))) - distance
            if value < 0:
                low, below, above, kept = middle, value, above / 2 if kept < 0 else above, -1
            else:
                high, above, below, kept = middle, value, below / 2 if kept > 0 else below, 1
            if abs(value) < _CLOSE * distance or high - low < _CLOSE * distance:
                break
        return self._alpha((low + high) / 2 if abs(value) >= _CLOSE * distance else middle, side)

    def _alpha(self, distance: float, side: int) -> float:
        """Return the alpha at which the limit over cases has this distance to the mean."""
        at = (self.mean or 0.0) + side * distance
        tail = self.over_cases.p_above(at) if side < 0 else self.over_cases.p_below(at)
        return min(1.0, max(_SMALLEST_ALPHA, 2 * tail))
