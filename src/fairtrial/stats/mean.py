"""The confidence interval of a mean over units, used everywhere, with p-values that never contradict it.

Units are cases, or clusters of cases. One rule chooses the method, from the data and the scale alone: Student's t with
the jackknife standard error (CR3) if the units vary enough on the scale and that spread does not come from a few of
them; otherwise the bounded interval of Gaffke and of Learned-Miller and Thomas, which assumes only that the values are
on the scale. For right or wrong it is Clopper and Pearson's interval; its p on wins and losses is McNemar's exact one.
Verdicts are read off `interval`, at any level; `p_value` is the level at which the interval just reaches a point.
"""

from __future__ import annotations

import math
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import beta_inc, negligible, normal_quantile, t_cdf, t_quantile, t_two_sided

Floats = NDArray[np.float64]
Bounds = tuple[float, float]

ALPHA = 0.05
LEAST_SPREAD = 1.0  # sum of squared deviations over all units, as large as that of one full flip
MOST_SKEW = 0.2
_STEP, _START, _END, _CHUNK = 0.04, -10.0, 40.0, 80
_AWAY = 0.5
_MOST_KNOWN = 10_000
_known: dict[tuple[bytes, float], float] = {}  # what `_above` returned; keys of a fixed size, however many units


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
    ) -> None:
        """`bounds` are the limits of a value; `span` is a full flip, by default the distance of the two."""
        y = np.asarray(values, dtype=np.float64)
        w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        counted = w > 0
        y, w = y[counted], w[counted]
        self.count = len(y)
        self.clustered = False
        if clusters is not None and self.count:
            names, codes = np.unique(np.asarray(clusters)[counted], return_inverse=True)
            if len(names) < self.count:
                self.clustered = True
                total = np.bincount(codes, weights=w).astype(np.float64)
                y, w = np.bincount(codes, weights=w * y) / total, total
        self.bounds = bounds
        self.span = bounds[1] - bounds[0] if span is None else span
        self._y = y
        self._p = w / w.sum() if self.count else w
        self.units = len(y)
        self._p_cache: dict[tuple[str, float], float] = {}  # p-values computed so far
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
        """Return `t`, `bounded`, or why neither is possible."""
        if self.units == 0:
            return "no scores"
        if self.units == 1 or self._one_unit_dominates:
            return "one cluster" if self.clustered else "n = 1"
        if not self._is_bounded:
            return "t" if self.std_err else "nothing varies"
        fits = self.spread >= LEAST_SPREAD and self.skew <= MOST_SKEW and not self._right_or_wrong
        return "t" if fits else "bounded"

    @cached_property
    def _right_or_wrong(self) -> bool:
        """Return whether units have equal weight and only values at the two ends of the scale.

        The exact interval is as narrow as t there, and keeps its coverage where a few right answers more or less decide
        (t with 25 units covers 92.9 % at worst).
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

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return the 1 − alpha interval of the mean."""
        if self.mean is None or self.method not in ("t", "bounded"):
            return None
        return self.limit(alpha, -1), self.limit(alpha, 1)

    def limit(self, alpha: float, side: int) -> float:
        """Return the lower (−1) or the upper (1) limit of the interval, where there is one."""
        end = self.bounds[side > 0]
        if self.method == "bounded":
            return _quantile(*self._dirichlet(end), alpha / 2 if side < 0 else 1 - alpha / 2)
        half = t_quantile(1 - alpha / 2, self.freedom) * (self.std_err or 0.0)
        mean = self.mean or 0.0
        return max(end, mean - half) if side < 0 else min(end, mean + half)

    def bounded_interval(self, alpha: float = ALPHA) -> Bounds:
        """Return the bounded interval, whichever method the rule chooses; it needs one unit and two bounds."""
        return (
            _quantile(*self._dirichlet(self.bounds[0]), alpha / 2),
            _quantile(*self._dirichlet(self.bounds[1]), 1 - alpha / 2),
        )

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the largest alpha at which the interval still contains the point."""
        if self.mean is None or self.method not in ("t", "bounded"):
            return None
        return min(1.0, 2 * min(self.p_below(point), self.p_above(point)))

    def p_above(self, point: float) -> float:
        """Return p against a mean at or below the point: half the alpha at which the lower limit reaches it."""
        if self.method == "t":
            assert self.mean is not None and self.std_err
            return t_cdf((point - self.mean) / self.std_err, self.freedom)
        if ("above", point) not in self._p_cache:
            self._p_cache["above", point] = 1 - _above(*self._dirichlet(self.bounds[0]), point)
        return self._p_cache["above", point]

    def p_below(self, point: float) -> float:
        """Return p against a mean at or above the point."""
        if self.method == "t":
            assert self.mean is not None and self.std_err
            return t_cdf((self.mean - point) / self.std_err, self.freedom)
        if ("below", point) not in self._p_cache:
            self._p_cache["below", point] = _above(*self._dirichlet(self.bounds[1]), point)
        return self._p_cache["below", point]

    def p_within(self, margin: float) -> float | None:
        """Return p against a mean outside ±margin: the largest alpha at which the interval still reaches beyond it."""
        if self.mean is None or self.method not in ("t", "bounded"):
            return None
        return min(1.0, 2 * max(self.p_above(-margin), self.p_below(margin)))

    def _dirichlet(self, end: float) -> tuple[Floats, Floats]:
        """Return values and their Dirichlet shapes: every unit by its weight, and one unseen unit at the end of the
        scale."""
        values, codes = np.unique(np.append(self._y, end), return_inverse=True)
        shapes = np.bincount(codes, weights=np.append(self.effective * self._p, 1.0))
        return values, np.asarray(shapes, dtype=np.float64)


def _above(values: Floats, shapes: Floats, point: float) -> float:
    """Return P(Σ w·values > point) for w ~ Dirichlet(shapes).

    Headlines, tables and charts ask for the same limits again and again, each through a mean of its own.
    """
    key = blake2b(values.tobytes() + shapes.tobytes(), digest_size=16).digest(), point
    found = _known.get(key)
    if found is None:
        found = _integral(values, shapes, point)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[key] = found
    return found


def _integral(values: Floats, shapes: Floats, point: float) -> float:
    """Compute this probability.

    A Dirichlet is gammas divided by their sum, so only the sign of Σ gamma·(value − point) matters. Its probability is
    an integral over the moment generating function along any vertical line of the complex plane. On the line through
    the saddle point nothing oscillates, however many units there are, and small probabilities keep their digits.
    """
    if point <= values[0] or point >= values[-1]:
        return 0.0 if point >= values[-1] else 1.0
    if len(values) == 2:  # a beta distribution
        low, high = (float(value) for value in values)
        return 1 - beta_inc(float(shapes[1]), float(shapes[0]), (point - low) / (high - low))
    c = (values - point) / float(values[-1] - values[0])  # the sign stays the same, and no square gets too small
    apart = np.abs(c) > 1e-13
    c, shapes = c[apart], shapes[apart]
    if c[0] > 0 or c[-1] < 0:
        return 1.0 if c[0] > 0 else 0.0
    line = _saddle(c, shapes)
    spread = math.sqrt(float(np.sum(shapes * c**2)))
    if abs(line) * spread < _AWAY:  # the integrand has a pole at 0: keep the line at some distance
        line = min(_AWAY / spread, 0.5 / float(c[-1]))
    tilted = c / (1 - line * c)
    height = math.exp(-float(shapes @ np.log1p(-line * c)))  # of the moment generating function on the line
    scale = math.sqrt(float(np.sum(shapes * tilted**2)))
    total, before = 0.0, 0.0
    for start in np.arange(_START, _END, _STEP * _CHUNK):
        y = np.exp(start + _STEP * np.arange(_CHUNK)) / scale
        angle, faded = np.zeros(_CHUNK), np.zeros(_CHUNK)
        for first in range(0, len(tilted), 8192):  # bounded memory, however many units there are
            part = slice(first, first + 8192)
            turned = np.multiply.outer(y, tilted[part])
            angle += np.arctan(turned) @ shapes[part]
            faded += np.log1p(turned**2) @ shapes[part]
        curve = (np.exp(1j * angle - 0.5 * faded) / (line + 1j * y)).real * y
        total += float(curve.sum())
        before = before or float(curve[0]) / math.expm1(_STEP)  # left of the grid the integrand is e^v times a constant
        if start > 0 and abs(float(curve[-1])) < 1e-17:
            break
    tail = _STEP / math.pi * height * (total + before)
    return min(1.0, max(0.0, tail if line > 0 else 1.0 + tail))


def _saddle(c: Floats, shapes: Floats) -> float:
    """Return roughly where the moment generating function of Σ gamma·c is smallest, by Newton steps in a bracket."""
    low, high = 1 / float(c[0]), 1 / float(c[-1])  # c[0] < 0 < c[-1]
    at = 0.0
    for _ in range(80):
        tilted = c / (1 - at * c)
        slope, curvature = float(shapes @ tilted), float(shapes @ tilted**2)
        if abs(slope) < 1e-3 * math.sqrt(curvature):  # close enough: the integral is the same along every line
            break
        low, high = (at, high) if slope < 0 else (low, at)
        step = at - slope / curvature
        at = step if low < step < high else (low + high) / 2
    return at


def _quantile(values: Floats, shapes: Floats, share: float) -> float:
    """Return the point below which Σ w·values falls with probability `share`."""
    low, span = float(values[0]), float(values[-1] - values[0])
    return low + span * _unit_quantile((values - low) / span, shapes, share) if span else low


def _unit_quantile(values: Floats, shapes: Floats, share: float) -> float:
    """Return the same quantile for values from 0 to 1.

    On the scale of normal deviates the distribution function is nearly a straight line, so false position (Illinois)
    takes a few steps from the first guess by mean and variance.
    """
    low, high = 0.0, 1.0
    count = float(shapes.sum())
    middle = float(shapes @ values) / count
    spread = math.sqrt(float(shapes @ (values - middle) ** 2) / count / (count + 1))
    wanted = normal_quantile(share)

    def off(point: float) -> float:
        below = 1 - _above(values, shapes, point)
        return normal_quantile(min(1 - 1e-15, max(1e-15, below))) - wanted

    guess = min(1 - 1e-9, max(1e-9, middle + wanted * spread))
    spread = max(1e-9, spread)
    at_guess = off(guess)
    f_low, f_high = (at_guess, None) if at_guess < 0 else (None, at_guess)
    low, high = (guess, high) if at_guess < 0 else (low, guess)
    while f_low is None or f_high is None:  # find a bracket: step out until the sign changes or the scale ends
        spread *= 2
        edge = 1.0 if f_high is None else 0.0
        point = min(edge, guess + spread) if f_high is None else max(edge, guess - spread)
        value = (8.0 if f_high is None else -8.0) if point == edge else off(point)
        if value > 0:
            high, f_high = point, value
        else:
            low, f_low = point, value
    side = 0
    for _ in range(100):
        point = (low * f_high - high * f_low) / (f_high - f_low)
        value = off(point)
        if abs(value) < 1e-10 or high - low < 1e-13:
            break
        if value < 0:
            low, f_low = point, value
            f_high = f_high / 2 if side == 1 else f_high
            side = 1
        else:
            high, f_high = point, value
            f_low = f_low / 2 if side == -1 else f_low
            side = -1
    return point
