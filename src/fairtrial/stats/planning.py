"""Before a run: how many cases it takes to see a difference, and what can be seen with those there are.

Student's t, with a deviation that is itself estimated: the probability is an average over that estimate (the
noncentral t, as an integral). A pilot's deviation is uncertain too; with `pilot` cases behind it, the average is also
over what the true one may be (assurance). Where the result will be read off the bounded interval, `by_the_rule` asks
for more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.distributions import normal_quantile, t_quantile
from fairtrial.stats.mean import Mean, StudentMean

Floats = NDArray[np.float64]
_NODES = 96
_MOST_CASES = 10_000_000
_VALUES = 60  # of so many different ones the shape is known well enough
_ONE_IN_20 = 1.645  # in standard deviations
_ALWAYS_T = 0.6  # with so large a deviation a handful of cases has the spread that t needs
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def power(sd: float, delta: float, *, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None) -> int:
    """How many cases it takes to see a difference of `delta` with probability 1 − beta."""
    if delta == 0:
        raise ValueError("no number of cases shows a difference of 0")
    return _fewest(lambda n: chance_to_see(n, delta, sd=sd, alpha=alpha, pilot=pilot), sd / abs(delta), alpha, beta)


def cases_for_equivalence(
    sd: float, margin: float, *, delta: float = 0.0, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None
) -> int:
    """How many cases put the interval inside ±margin with probability 1 − beta, if the truth is `delta`."""
    if abs(delta) >= margin:
        raise ValueError("the true difference must lie inside the margin")
    room = sd / (margin - abs(delta))
    return _fewest(lambda n: chance_within(n, margin, sd=sd, delta=delta, alpha=alpha, pilot=pilot), room, alpha, beta)


def cases_for_gate(
    sd: float, margin: float, *, delta: float = 0.0, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None
) -> int:
    """How many cases rule out a loss beyond the margin with probability 1 − beta, if the truth is `delta`."""
    if delta <= -margin:
        raise ValueError("the true difference must lie above −margin")
    room = sd / (margin + delta)
    return _fewest(lambda n: chance_to_pass(n, margin, sd=sd, delta=delta, alpha=alpha, pilot=pilot), room, alpha, beta)


def chance_to_see(n: float, delta: float, *, sd: float = 1.0, alpha: float = 0.05, pilot: int | None = None) -> float:
    """The probability that the interval of n differences leaves out 0."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(lambda error, root: _phi(delta / error - q * root) + _phi(-delta / error - q * root), n, sd, pilot)


def chance_within(
    n: float, margin: float, *, sd: float = 1.0, delta: float = 0.0, alpha: float = 0.05, pilot: int | None = None
) -> float:
    """The probability that the interval of n differences lies inside ±margin."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(
        lambda error, root: np.maximum(
            0.0, _phi((margin - delta) / error - q * root) - _phi((-margin - delta) / error + q * root)
        ),
        n, sd, pilot,
    )  # fmt: skip


def chance_to_pass(
    n: float, margin: float, *, sd: float = 1.0, delta: float = 0.0, alpha: float = 0.05, pilot: int | None = None
) -> float:
    """The probability that the interval of n differences lies above −margin."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(lambda error, root: _phi((margin + delta) / error - q * root), n, sd, pilot)


def detectable(sd: float, n: float, *, alpha: float = 0.05, beta: float = 0.2) -> float:
    """The smallest difference that n cases show with probability 1 − beta."""
    if n < 2:
        raise ValueError("it takes two cases at least")
    low, high = 0.0, 2 * (normal_quantile(1 - alpha / 2) + normal_quantile(1 - beta))
    while chance_to_see(n, high / math.sqrt(n), alpha=alpha) < 1 - beta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if high - low < 1e-10 * high:
            break
        low, high = (middle, high) if chance_to_see(n, middle / math.sqrt(n), alpha=alpha) < 1 - beta else (low, middle)
    return sd / math.sqrt(n) * (low + high) / 2


def typical(n: int, centre: float, sd: float) -> Floats:
    """n differences as they are on average: normal quantiles of this deviation around a centre, on the scale ±1."""
    values = min(n, _VALUES)
    at = np.asarray([normal_quantile((i + 0.5) / values) for i in range(values)])
    each = [len(part) for part in np.array_split(np.arange(n), values)]  # of many cases, some are alike
    at = np.repeat(at, each)
    at = at - at.mean()
    spread = float(np.std(at, ddof=1)) if n > 1 else 1.0
    return np.asarray(np.clip(centre + sd * at / spread, -1.0, 1.0), dtype=np.float64)


def by_the_rule(
    cases: int, sd: float, centre: Callable[[int], float], told: Callable[[Mean], bool], *, most: int = 20_000
) -> int:
    """The number of cases planned by t, or more where the interval would be the bounded one: so many that typical
    differences around a centre are told, and those that vary as little as in one sample of 20."""
    while cases < most and sd < _ALWAYS_T:
        little = max(0.0, 1 - _ONE_IN_20 / math.sqrt(2 * cases))
        samples = (
            Mean(typical(cases, centre(cases), spread), bounds=(-1.0, 1.0), span=1.0) for spread in (sd, little * sd)
        )
        if all(mean.method == "t" or told(mean) for mean in samples):
            break
        cases = math.ceil(1.15 * cases) + 1
    return cases


def fewest_cases(alpha: float = 0.05) -> int:
    """With fewer, not even a full difference in every case leaves out 0: 2·2^−n must be below alpha."""
    return math.floor(1 - math.log2(alpha)) + 1


def detectable_again(found: Mean | StudentMean, *, alpha: float = 0.05, beta: float = 0.2) -> float | None:
    """The smallest difference that an experiment like this one would show with probability 1 − beta, read off the same
    kind of interval; None where none can."""
    span = found.span if isinstance(found, Mean) else math.inf
    if isinstance(found, Mean) and found.method == "bounded":
        units = max(2, round(found.effective))
        share = _detectable_by_bounds((found.std_err or 0.0) * math.sqrt(units) / span, units, alpha, beta)
        return None if share is None else share * span
    if not found.std_err or found.freedom < 1:
        return None
    n = found.freedom + 1
    smallest = detectable(found.std_err * math.sqrt(n), n, alpha=alpha, beta=beta)
    return smallest if smallest <= span else None


def _detectable_by_bounds(sd: float, n: int, alpha: float, beta: float) -> float | None:
    """On the scale ±1, by typical differences of n cases."""
    if n < fewest_cases(alpha):
        return None
    back = normal_quantile(1 - beta) * sd / math.sqrt(n)

    def told(delta: float) -> bool:
        p = Mean(typical(n, delta - back, sd), bounds=(-1.0, 1.0), span=1.0).p_value()
        return p is not None and p < alpha

    if not told(1.0 + back):
        return None
    low, high = 0.0, 1.0 + back
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if told(middle) else (middle, high)
    return min(1.0, high)


def _fewest(chance: Callable[[int], float], room: float, alpha: float, beta: float) -> int:
    """The fewest cases for which the chance is 1 − beta; it grows with their number."""
    guess = (normal_quantile(1 - alpha / 2) + normal_quantile(1 - beta)) ** 2 * room**2
    low, high = 1, max(2, math.ceil(min(guess, _MOST_CASES)))
    while high < _MOST_CASES and chance(high) < 1 - beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(middle) < 1 - beta else (low, middle)
    return high


def _averaged(chance: Callable[[Floats, Floats], Floats], n: float, sd: float, pilot: int | None) -> float:
    """A chance that depends on the true standard error and on the estimated over the true deviation, on average."""
    roots, weights = _estimates(n - 1)
    if pilot is None:
        return float(weights @ chance(np.asarray(sd / math.sqrt(n)), roots))
    ratios, shares = _estimates(pilot - 1)
    errors = sd / np.maximum(ratios, 1e-9) / math.sqrt(n)
    return float(shares @ chance(errors[:, None], roots[None, :]) @ weights)


@lru_cache(maxsize=512)
def _estimates(freedom: float) -> tuple[Floats, Floats]:
    """What an estimated deviation may be in units of the true one, with weights: √(χ²/ν), by Gauss and Legendre."""
    at, weights = np.polynomial.legendre.leggauss(_NODES)
    reach = 9 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - reach), 1 + reach
    x = (at + 1) / 2
    power_of_x = 3 if low == 0 else 1  # with few degrees of freedom, much happens near 0: nodes are dense there
    s = low + (high - low) * x**power_of_x
    weights = weights * power_of_x * x ** (power_of_x - 1)
    log_density = (
        math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
        + (freedom - 1) * np.log(s) - freedom * s**2 / 2
    )  # fmt: skip
    density = weights * (high - low) / 2 * np.exp(log_density)
    return s, density / density.sum()


def _phi(z: Floats) -> Floats:
    return np.asarray(0.5 * _erfc(-z / math.sqrt(2)), dtype=np.float64)
