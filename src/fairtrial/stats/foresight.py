"""What a repeat of an experiment would detect: repeats are drawn from the differences seen, and the interval rule is
applied to each of them.

Formulas by mean and standard deviation promise too much where differences are skewed, mostly ties, or so few that the
rule may choose either interval. A repeat is drawn in two steps, as a pilot knows its population only so well: a
population around the differences seen (Bayesian bootstrap), then cases from it. The effect is added to every case;
where many cases are tied, some of them gain a whole step instead, as answers that were wrong become right.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.distributions import t_quantile
from fairtrial.stats.mean import GUARD, GUARD_TIMES, LEAST_SPREAD, MOST_SKEW, Mean
from fairtrial.stats.normal import normal_shares

Floats = NDArray[np.float64]
_CELLS, _FEWEST, _MOST = 6_000, 50, 200  # values drawn for all repeats together, and limits of their number
_MANY, _GROUPS, _ENDS = 200, 80, 40  # with more units, neighbours are taken together
_MOST_IN_STEPS = 1_000
TIED = 0.1  # with as many ties, an effect comes in steps
_SEED = 1
_CAUTION = 0.85  # of beta: a sample is less skewed than where it comes from, so that repeats do a little worse
_PRECISE, _NEWTON = 0.02, 5
_MIDDLE = 1e-3  # standard deviations from the middle, where the quick p's formula is 0 / 0


class Repeats:
    """Repeats of an experiment, drawn from the units seen."""

    def __init__(self, mean: Mean, n: int, *, stretch: float = 1.0) -> None:
        """Each repeat has n units, which differ from each other by `stretch` times as much as those seen."""
        rng = np.random.default_rng(_SEED)
        self._span, self.n, seen = mean.span, n, mean.units
        self._step = _step(mean) if n <= _MOST_IN_STEPS else None
        units, shares = mean.unit_values - (mean.mean or 0.0), mean.unit_shares
        self._bounds = mean.bounds
        if _is_behind(mean, units):  # so that a pair has the same repeats, whichever arm is named first
            units, self._bounds = 0.0 - units, (0.0 - mean.bounds[1], 0.0 - mean.bounds[0])
        if n > _MANY and self._step is None and len(units) > _GROUPS + _ENDS:
            units, shares = _grouped(units, shares)
        count = min(_MOST, max(_FEWEST, _CELLS // min(n, _MANY)))
        # So that populations vary as much, on average, as the units seen do.
        units = units * stretch * math.sqrt((seen + 1) / max(1, seen - 1))
        weights = rng.standard_gamma(seen * shares, (count, len(units)))
        weights /= weights.sum(axis=1, keepdims=True)
        centres = (weights @ units)[:, None]
        if n > _MANY and self._step is None:  # this many of each value
            self._values: Floats = units - centres
            self._counts: Floats = np.asarray([rng.multinomial(n, row) for row in weights], dtype=np.float64)
        else:  # each by itself
            drawn = zip(np.cumsum(weights, axis=1), rng.random((count, n)), strict=True)
            places = np.asarray([np.searchsorted(row, at) for row, at in drawn])
            self._values = units[np.minimum(places, len(units) - 1)] - centres
            self._counts = np.ones_like(self._values)
        self._luck = rng.random(self._values.shape)

    def enough(self, delta: float, alpha: float, beta: float) -> bool:
        """Return whether 1 − beta of the repeats detect a true difference of delta, in either direction."""
        return self._enough(delta, alpha, beta) and self._enough(-delta, alpha, beta)

    def smallest(self, alpha: float, beta: float, *, guess: float) -> float | None:
        """Return the smallest difference, in either direction, that 1 − beta of the repeats detect; None if none is."""
        found = self._least(1.0, guess, alpha, beta)
        if found is not None and not self._enough(-found, alpha, beta):
            return self._least(-1.0, found, alpha, beta)
        return found

    def _least(self, sign: float, guess: float, alpha: float, beta: float) -> float | None:
        """Return the smallest difference in one direction, about as large as guessed or larger."""
        low, high = 0.0, min(guess, self._span)
        while not self._enough(sign * high, alpha, beta):
            if high >= self._span:
                return None
            low, high = high, min(1.5 * high, self._span)
        while high - low > _PRECISE * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._enough(sign * middle, alpha, beta) else (middle, high)
        return high

    def _enough(self, delta: float, alpha: float, beta: float) -> bool:
        return self.detected(delta, alpha) >= 1 - _CAUTION * beta

    def detected(self, delta: float, alpha: float) -> float:
        """Return the share of repeats whose interval excludes 0 on the right side, if the true difference is delta."""
        sign, (low, high) = math.copysign(1.0, delta), self._bounds
        low, high = (low, high) if sign > 0 else (-high, -low)
        seen = sign * self._values
        values = np.clip(self._changed(seen, abs(delta)), low, high)
        gained = float(np.average(values - seen, weights=self._counts))
        if gained > 0:  # what cannot rise above the scale has to rise elsewhere
            values = np.clip(self._changed(seen, delta**2 / gained), low, high)
        mean = np.einsum("ij,ij->i", self._counts, values) / self.n
        rest = values - mean[:, None]
        squares = np.einsum("ij,ij,ij->i", self._counts, rest, rest)
        cubes = np.abs(np.einsum("ij,ij,ij,ij->i", self._counts, rest, rest, rest))
        guarded = (squares >= LEAST_SPREAD * self._span**2) & (cubes <= MOST_SKEW * squares**1.5)
        needed = t_quantile(1 - alpha / 2, self.n - 1) * np.sqrt(squares / (self.n - 1) / self.n)
        found = mean > needed
        flips = np.all(np.abs(values[found]) == self._span, axis=1)  # whose interval is exact
        share = np.where(flips, alpha / 2, np.where(guarded[found], max(GUARD_TIMES * alpha, GUARD), alpha))
        found[found] = _below_zero(values[found], self._counts[found], low) < share
        return float(found.mean())

    def _changed(self, values: Floats, delta: float) -> Floats:
        """Return the values with the effect: delta on all, or whole steps on as many as make delta."""
        if self._step is None:
            return values + delta
        lost = values < 0  # these turn first
        steps = delta / self._step * (1 + lost) / (1 + float(lost.mean()))  # counts are 1 here
        whole = np.floor(steps)
        changed: Floats = values + self._step * (whole + (self._luck < steps - whole))
        return changed


def _is_behind(mean: Mean, units: Floats) -> bool:
    """Return whether the second arm is ahead, or leans that way where both are level."""
    lean = (mean.mean or 0.0) or float(mean.unit_shares @ units**3)
    return lean < 0


def _step(mean: Mean) -> float | None:
    """Return the size of a typical difference where many units are tied, or right or wrong; None elsewhere."""
    if mean.tied < TIED and not right_or_wrong(mean):
        return None
    size = float(mean.unit_shares @ np.abs(mean.unit_values))
    return float(mean.unit_shares @ mean.unit_values**2) / size if size > 0 else mean.span


def right_or_wrong(mean: Mean) -> bool:
    """Return whether every unit is tied or a full flip."""
    return bool(np.all(np.isin(np.abs(mean.unit_values), (0.0, mean.span))))


def _grouped(units: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return fewer values with their shares: the most extreme as they are, the others in groups of neighbours."""
    order = np.argsort(np.abs(units))
    middle, ends = order[:-_ENDS], order[-_ENDS:]
    groups = np.array_split(middle[np.argsort(units[middle])], _GROUPS)
    weights = np.asarray([shares[group].sum() for group in groups])
    values = np.asarray([shares[group] @ units[group] for group in groups]) / weights
    return np.concatenate([values, units[ends]]), np.concatenate([weights, shares[ends]])


def _below_zero(values: Floats, counts: Floats, end: float) -> Floats:
    """Return P(Σ w·values ≤ 0) of each row, w ~ Dirichlet(counts) with one unseen unit at the end of the scale.

    This is the bounded interval's p by Lugannani and Rice's saddle point, right to about a hundredth of itself. Means
    must be above 0, and the end below.
    """
    if not len(values):
        return np.empty(0)
    c = np.concatenate([values, np.full((len(values), 1), end)], axis=1) / -end
    shapes = np.concatenate([counts, np.ones((len(values), 1))], axis=1)
    total = np.einsum("ij,ij->i", shapes, c)
    low, high = np.full(len(c), -1.0), np.zeros(len(c))
    at = np.maximum(-0.5, -np.maximum(0.0, total) / np.einsum("ij,ij,ij->i", shapes, c, c))
    for _ in range(_NEWTON):
        tilted = c / (1 - at[:, None] * c)
        slope = np.einsum("ij,ij->i", shapes, tilted)
        curvature = np.einsum("ij,ij,ij->i", shapes, tilted, tilted)
        low, high = np.where(slope < 0, at, low), np.where(slope < 0, high, at)
        step = at - slope * (1 + at) / (curvature * (1 + at) + slope)  # of the slope without its pole at −1
        at = np.where((step >= low) & (step <= high), step, (low + high) / 2)
    tilted = c / (1 - at[:, None] * c)
    height = -np.einsum("ij,ij->i", shapes, np.log1p(-at[:, None] * c))
    root = -np.sqrt(np.maximum(1e-12, -2 * height))
    skewed = np.minimum(-1e-6, at) * np.sqrt(np.einsum("ij,ij,ij->i", shapes, tilted, tilted))
    density = np.exp(-(root**2) / 2) / math.sqrt(2 * math.pi)
    beside = np.where(root < -_MIDDLE, density * (1 / root - 1 / skewed), 0.0)
    below = normal_shares(root) + beside
    return np.where(total > 0, np.clip(below, 0.0, 1.0), 1.0)
