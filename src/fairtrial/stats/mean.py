"""The confidence interval of a mean over units, used everywhere, with p-values that never contradict it.

Units are cases, or clusters of cases. Two intervals must agree, so that the one shown is the hull of both: Student's t
with the jackknife standard error (CR3), and the bounded one of Gaffke and of Learned-Miller and Thomas, which assumes
only that the values are on the scale. How much the second one is asked for depends on the data and the scale alone:
little if the units vary enough on the scale and that spread does not come from a few of them, so that t is right by
itself; otherwise its one-sided error is as large as the two-sided error of t. For right or wrong it is Clopper and
Pearson's interval alone. Where each limit is a claim of its own (`one_sided`), as in
gates, that error is halved.
Verdicts are read off `interval`, at any level; `p_value` is the level at which the interval just reaches a point.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats import bounded
from fairtrial.stats.distributions import negligible, t_cdf, t_quantile, t_two_sided

Floats = NDArray[np.float64]
Bounds = tuple[float, float]

ALPHA = 0.05
LEAST_SPREAD = 1.0  # sum of squared deviations over all units, as large as that of one full flip
MOST_SKEW = 0.2
GUARD, GUARD_TIMES = 0.05, 3  # the one-sided error of the bounded interval where t is right: at least, and × alpha
_TELLING = 0.2  # correlation of weights and values from which on weights say something about values


class Estimate(Protocol):
    """An estimate that a verdict can be read off: it has an interval at any level, and p-values that agree with it."""

    @property
    def mean(self) -> float | None: ...
    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return the 1 − alpha interval."""

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the largest alpha at which the interval still contains the point."""

    def p_within(self, margin: float) -> float | None:
        """Return the largest alpha at which the interval still reaches beyond ±margin."""


class StudentMean:
    """A mean with a standard error and degrees of freedom from any source."""

    mean: float
    std_err: float
    freedom: float
    bounds: Bounds = (-math.inf, math.inf)

    def interval(self, alpha: float = ALPHA) -> Bounds:
        """Return the 1 − alpha interval, limited to the possible values of the mean."""
        half = t_quantile(1 - alpha / 2, self.freedom) * self.std_err
        low, high = self.mean - half, self.mean + half
        return min(self.bounds[1], max(self.bounds[0], low)), max(self.bounds[0], min(self.bounds[1], high))

    def p_value(self, point: float = 0.0) -> float:
        """Return the largest alpha at which the interval still contains the point."""
        return t_two_sided((self.mean - point) / self.std_err, self.freedom)

    def p_within(self, margin: float) -> float:
        """Return the largest alpha at which the interval still reaches beyond ±margin."""
        return min(1.0, 2 * t_cdf((abs(self.mean) - margin) / self.std_err, self.freedom))


class Mean:
    """The weighted mean of values over units. Results that cannot be computed are None."""

    def __init__(
        self,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        *,
        bounds: Bounds = (-math.inf, math.inf),
        span: float | None = None,
        one_sided: bool = False,
    ) -> None:
        """`bounds` are the limits of a value; `span` is a full flip, by default the distance of the two.

        `one_sided` if each limit of an interval is a claim of its own, with half of the error.
        """
        y = np.asarray(values, dtype=np.float64)
        w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        counted = w > 0
        y, w = y[counted], w[counted]
        self.count = len(y)
        self._weighted = weights is not None and self.count > 1 and bool(np.ptp(w) > 0)
        self.clustered = False
        if clusters is not None and self.count:
            names, codes = np.unique(np.asarray(clusters)[counted], return_inverse=True)
            if len(names) < self.count:
                self.clustered = True
                total = np.bincount(codes, weights=w).astype(np.float64)
                y, w = np.bincount(codes, weights=w * y) / total, total
        self.bounds, self.one_sided = bounds, one_sided
        self.span = bounds[1] - bounds[0] if span is None else span
        self._y = y
        self._p = w / w.sum() if self.count else w
        self.units = len(y)
        self._shapes: dict[int, tuple[Floats, Floats]] = {}
        self._tails: dict[tuple[int, float], float] = {}  # of the bounded interval, computed so far
        self.mean = float(w @ y / w.sum()) if self.count else None

    @cached_property
    def _residuals(self) -> Floats:
        residuals = self._y - (self.mean or 0.0)
        largest = float(np.abs(self._y).max()) if self.units else 0.0
        return np.zeros_like(residuals) if negligible(float(np.abs(residuals).max(initial=0.0)), largest) else residuals

    @property
    def unit_values(self) -> Floats:
        """Return the value of every unit."""
        return self._y

    @property
    def unit_shares(self) -> Floats:
        """Return every unit's share of the weight."""
        return self._p

    @property
    def tied(self) -> float:
        """Return the share of units whose value is 0."""
        return float(self._p[self._y == 0].sum())

    @cached_property
    def effective(self) -> float:
        """Return the effective number of units: how many of equal weight these are worth (Kish)."""
        return 1 / float(np.sum(self._p**2)) if self.units else 0.0

    @property
    def variance_of_units(self) -> float:
        """Return the variance of the values, as the units count."""
        return (self.std_err or 0.0) ** 2 * self.effective

    def foreseen(self, units: int, spread: float) -> Mean:
        """Return what to expect of another number of units like these, which deviate this many times as much."""
        order = np.argsort(self._y, kind="stable")
        drawn = order[((np.arange(units) + 0.5) * self.units / units).astype(np.int64)]
        values = np.clip((self.mean or 0.0) + spread * self._residuals[drawn], *self.bounds)
        weights = self._p[drawn] if self._weighted or self.clustered else None
        return Mean(values, weights, bounds=self.bounds, span=self.span, one_sided=self.one_sided)

    @cached_property
    def std_err(self) -> float | None:
        """Return the jackknife standard error over units, each left out once (CR3)."""
        if self.units < 2 or self._one_unit_dominates:
            return None
        r = self._p / (1 - self._p)
        return math.sqrt((self.units - 1) / self.units * float(np.sum((r * self._residuals) ** 2)))

    @cached_property
    def freedom(self) -> float:
        """Return the degrees of freedom of this standard error: fewer if a few units carry most of the weight."""
        r = self._p / (1 - self._p)
        squares = float(np.sum(r**2))
        return float(np.sum(r)) ** 2 / (squares + max(0.0, squares**2 - float(np.sum(r**4))))

    @cached_property
    def spread(self) -> float:
        """Return the sum of squared deviations over all units, in units of a full flip of the scale."""
        if not math.isfinite(self.span):
            return math.inf
        return self.effective**2 * float(np.sum((self._p * self._residuals) ** 2)) / self.span**2

    @cached_property
    def skew(self) -> float:
        """Return the skewness of the mean's own distribution: 0 for none, large if a few units dominate it."""
        parts = self._p * self._residuals
        squares = float(np.sum(parts**2))
        return abs(float(np.sum(parts**3))) / squares**1.5 if squares > 0 else 0.0

    @cached_property
    def method(self) -> str:
        """Return which interval decides: `t`, `bounded` (and t, where the two must agree), or why there is none."""
        if self.units == 0:
            return "no scores"
        if self.units == 1 or self._one_unit_dominates:
            return "one cluster" if self.clustered else "n = 1"
        if not self._is_bounded:
            return "t" if self.std_err else "nothing varies"
        fits = self.spread >= LEAST_SPREAD and self.skew <= MOST_SKEW and not self._right_or_wrong
        return "t" if fits else "bounded"

    @property
    def exists(self) -> bool:
        """Return whether there is an interval."""
        return self.method in ("t", "bounded")

    @cached_property
    def _exact(self) -> bool:
        """Return whether there is an exact interval, which t has no say in."""
        return self._is_bounded and self._right_or_wrong

    @property
    def _by_t(self) -> bool:
        """Return whether t has a say: something varies, too."""
        return bool(self.std_err) and not self._exact

    @cached_property
    def _right_or_wrong(self) -> bool:
        """Return whether units have equal weight and only values at the two ends of the scale.

        The exact interval is as narrow as t there, and keeps its coverage where a few right answers more or less decide
        (t with 25 units covers 92.9 % at worst, and the hull of both 92.6 %).
        """
        alike = bool(np.ptp(self._p) <= 1e-12 * self._p[0])
        return alike and bool(np.all((self._y == self.bounds[0]) | (self._y == self.bounds[1])))

    @property
    def _one_unit_dominates(self) -> bool:
        """Return whether one unit has all of the weight, up to rounding."""
        return self.units > 1 and float(self._p.max()) > 1 - 1e-9

    @property
    def method_words(self) -> str:
        """Return the method, and whether its units are clusters."""
        return f"{self.method}, over clusters" if self.clustered and self.units > 1 else self.method

    @property
    def _is_bounded(self) -> bool:
        return all(math.isfinite(bound) for bound in self.bounds)

    @property
    def rough(self) -> bool:
        """Return whether t is used although it may not be valid, because the limits of the values are unknown."""
        return self.method == "t" and not self._is_bounded and self.skew > MOST_SKEW

    @cached_property
    def telling(self) -> bool:
        """Return whether the weights that were given say something about the values: both grow together, or apart."""
        if not self._weighted or self.units < 2:
            return False
        weights, values = self._p - self._p.mean(), self._y - self._y.mean()
        scale = math.sqrt(float(weights @ weights) * float(values @ values))
        return scale > 0 and abs(float(weights @ values)) > _TELLING * scale

    @cached_property
    def unseen(self) -> float:
        """Return how many units the unseen one counts for.

        Where weights say something about values, it may be one of the heaviest.
        """
        return max(1.0, self.effective * float(self._p.max())) if self.telling else 1.0

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return the 1 − alpha interval of the mean."""
        if self.mean is None or not self.exists:
            return None
        return self.limit(alpha, -1), self.limit(alpha, 1)

    def limit(self, alpha: float, side: int) -> float:
        """Return the lower (−1) or the upper (1) limit of the interval, where there is one."""
        end, mean = self.bounds[side > 0], self.mean or 0.0
        share = self._share(alpha)
        if not self._by_t:
            return self._bounded_limit(share, side)
        by_t = mean + side * t_quantile(1 - alpha / 2, self.freedom) * (self.std_err or 0.0)
        if not self._is_bounded:
            return by_t
        if side * (by_t - end) >= 0:
            return end
        if self._beyond(by_t, side, share):
            return by_t
        return self._bounded_limit(share, side)

    def clears(self, point: float, alpha: float) -> bool:
        """Return whether the bounded interval, as far as it is asked for at this level, ends before a point."""
        side = -1 if point < (self.mean or 0.0) else 1
        return not self._is_bounded or self._beyond(point, side, self._share(alpha))

    def widened(self, alpha: float = ALPHA) -> bool:
        """Return whether t would do, but the bounded interval makes this one wider."""
        if self.method != "t" or not self._is_bounded:
            return False
        half = t_quantile(1 - alpha / 2, self.freedom) * (self.std_err or 0.0)
        return any(side * (self.limit(alpha, side) - (self.mean or 0.0)) > half * (1 + 1e-9) for side in (-1, 1))

    def _beyond(self, point: float, side: int, share: float) -> bool:
        """Return whether the bounded interval ends before a point on this side of the mean."""
        return share >= 1 or bounded.share_is_below(*self._dirichlet(side), point, side=side, level=share)

    def _bounded_limit(self, share: float, side: int) -> float:
        return bounded.quantile(*self._dirichlet(side), share if side < 0 else 1 - share)

    @property
    def share_of_level(self) -> float:
        """Return which share of a two-sided level the bounded interval may err by on one side, where it decides."""
        return 0.5 if self.one_sided or self._exact else 1.0

    def _share(self, alpha: float) -> float:
        """Return the one-sided error that the bounded interval may have at a two-sided level."""
        if self.method == "t":
            return max(GUARD_TIMES * alpha, GUARD)
        return alpha * self.share_of_level

    def _level(self, share: float) -> float:
        """Return the two-sided level at which the bounded interval may have this one-sided error."""
        if self.method == "t":
            return 0.0 if share < GUARD else share / GUARD_TIMES
        return share / self.share_of_level

    def bounded_interval(self, alpha: float = ALPHA) -> Bounds:
        """Return the bounded interval by itself; it needs one unit and two bounds."""
        return self._bounded_limit(alpha / 2, -1), self._bounded_limit(alpha / 2, 1)

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the largest alpha at which the interval still contains the point."""
        if self.mean is None or not self.exists:
            return None
        return min(1.0, 2 * min(self.p_below(point), self.p_above(point)))

    def p_above(self, point: float) -> float:
        """Return p against a mean at or below the point: half the alpha at which the lower limit reaches it."""
        return self._p_beyond(point, -1)

    def p_below(self, point: float) -> float:
        """Return p against a mean at or above the point."""
        return self._p_beyond(point, 1)

    def p_by_t(self, point: float) -> float:
        """Return the two-sided p of t by itself; 0 where nothing varies."""
        return min(1.0, 2 * min(self._tail_of_t(point, -1), self._tail_of_t(point, 1)))

    def _tail_of_t(self, point: float, side: int) -> float:
        return t_cdf(side * ((self.mean or 0.0) - point) / self.std_err, self.freedom) if self.std_err else 0.0

    def _p_beyond(self, point: float, side: int) -> float:
        p = self._tail_of_t(point, side) if self._by_t else 0.0
        if not self._is_bounded or (self._by_t and self._settled(p, point, side)):
            return p
        return min(1.0, max(p, self._level(self._tail(point, side)) / 2))

    def _settled(self, p: float, point: float, side: int) -> bool:
        """Return whether the bounded interval leaves p as t has it, found without its integral."""
        return p >= 0.5 or self._beyond(point, side, self._share(2 * p))

    def _tail(self, point: float, side: int) -> float:
        """Return the one-sided error of the bounded interval whose limit on this side is the point."""
        if (side, point) not in self._tails:
            above = bounded.share_above(*self._dirichlet(side), point)
            self._tails[side, point] = above if side > 0 else 1 - above
        return self._tails[side, point]

    def p_within(self, margin: float) -> float | None:
        """Return p against a mean outside ±margin: the largest alpha at which the interval still reaches beyond it."""
        if self.mean is None or not self.exists:
            return None
        return min(1.0, 2 * max(self.p_above(-margin), self.p_below(margin)))

    def _dirichlet(self, side: int) -> tuple[Floats, Floats]:
        """Return values and their Dirichlet shapes, with an unseen unit at this end of the scale."""
        if side not in self._shapes:
            self._shapes[side] = self.with_unseen(self.bounds[side > 0])
        return self._shapes[side]

    def with_unseen(self, end: float) -> tuple[Floats, Floats]:
        """Return values and their Dirichlet shapes: every unit by its weight, and an unseen one of this value."""
        values, codes = np.unique(np.append(self._y, end), return_inverse=True)
        shapes = np.bincount(codes, weights=np.append(self.effective * self._p, self.unseen))
        return values, np.asarray(shapes, dtype=np.float64)
