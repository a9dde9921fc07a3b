"""Power analysis: how many cases are needed to detect a difference, and what the present cases can detect.

It is for Student's t, with an estimated standard deviation: the probability is an average over that estimate (the
noncentral t, as an integral). A pilot's standard deviation is uncertain too; if `pilot` cases are given, the average is
also over the possible true values (assurance). Where the result will be read off the bounded interval,
`cases_for_interval_rule` returns more cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.distributions import normal_quantile, t_quantile
from fairtrial.stats.foresight import TIED, Repeats, right_or_wrong
from fairtrial.stats.mean import LEAST_SPREAD, MOST_SKEW, Mean, StudentMean
from fairtrial.stats.normal import normal_shares as phi

Floats = NDArray[np.float64]
_NODES = 96
_MOST_CASES = 10_000_000
_VALUES = 60  # distinct values; enough to represent the shape
_ONE_IN_20 = 1.645  # in standard deviations
_MANY_UNITS, _SURE_SPREAD = 50, 2  # from which a formula is as good as drawn repeats
_MOST_DRAWN = 20_000
_ALWAYS_T = 0.6  # with a standard deviation this large, a handful of cases has the spread that t needs
_SKEWED = 1.0  # third moment of differences from which on the direction of an effect matters


def power(sd: float, delta: float, *, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None) -> int:
    """Return how many cases are needed to detect a difference of `delta` with probability 1 − beta."""
    if delta == 0:
        raise ValueError("no number of cases shows a difference of 0")
    return _fewest(lambda n: chance_to_see(n, delta, sd=sd, alpha=alpha, pilot=pilot), sd / abs(delta), alpha, beta)


def cases_for_equivalence(
    sd: float, margin: float, *, delta: float = 0.0, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None
) -> int:
    """Return how many cases put the interval inside ±margin with probability 1 − beta, if the truth is `delta`."""
    if abs(delta) >= margin:
        raise ValueError("the true difference must lie inside the margin")
    room = sd / (margin - abs(delta))
    return _fewest(lambda n: chance_within(n, margin, sd=sd, delta=delta, alpha=alpha, pilot=pilot), room, alpha, beta)


def cases_for_gate(
    sd: float, margin: float, *, delta: float = 0.0, alpha: float = 0.05, beta: float = 0.2, pilot: int | None = None
) -> int:
    """Return how many cases rule out a loss beyond the margin with probability 1 − beta, if the truth is `delta`."""
    if delta <= -margin:
        raise ValueError("the true difference must lie above −margin")
    room = sd / (margin + delta)
    return _fewest(lambda n: chance_to_pass(n, margin, sd=sd, delta=delta, alpha=alpha, pilot=pilot), room, alpha, beta)


def chance_to_see(n: float, delta: float, *, sd: float = 1.0, alpha: float = 0.05, pilot: int | None = None) -> float:
    """Return the probability that the interval of n differences excludes 0."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(
        lambda error, root: phi(delta / error - q * root) + phi(-delta / error - q * root),
        n,
        sd,
        pilot,
    )


def chance_within(
    n: float, margin: float, *, sd: float = 1.0, delta: float = 0.0, alpha: float = 0.05, pilot: int | None = None
) -> float:
    """Return the probability that the interval of n differences lies inside ±margin."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(
        lambda error, root: np.maximum(
            0.0, phi((margin - delta) / error - q * root) - phi((-margin - delta) / error + q * root)
        ),
        n, sd, pilot,
    )  # fmt: skip


def chance_to_pass(
    n: float, margin: float, *, sd: float = 1.0, delta: float = 0.0, alpha: float = 0.05, pilot: int | None = None
) -> float:
    """Return the probability that the interval of n differences lies above −margin."""
    q = t_quantile(1 - alpha / 2, n - 1)
    return _averaged(lambda error, root: phi((margin + delta) / error - q * root), n, sd, pilot)


def detectable(sd: float, n: float, *, alpha: float = 0.05, beta: float = 0.2) -> float:
    """Return the smallest difference that n cases detect with probability 1 − beta."""
    if n < 2:
        raise ValueError("at least two cases are needed")
    return sd / math.sqrt(n) * _standard_errors(n, alpha, beta)


@lru_cache(4096)  # the pairs of a run have the same cases, and many of them the same level
def _standard_errors(n: float, alpha: float, beta: float, pilot: int | None = None) -> float:
    """Return that difference in standard errors of the mean; `pilot` is how many cases the error is known from."""

    def seen(errors: float) -> bool:
        return chance_to_see(n, errors / math.sqrt(n), alpha=alpha, pilot=pilot) >= 1 - beta

    low, high = 0.0, 2 * (normal_quantile(1 - alpha / 2) + normal_quantile(1 - beta))
    while not seen(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if high - low < 1e-10 * high:
            break
        low, high = (low, middle) if seen(middle) else (middle, high)
    return (low + high) / 2


def typical(n: int, centre: float, sd: float) -> Floats:
    """Return n typical differences: normal quantiles with this standard deviation around a centre, on the scale ±1."""
    values = min(n, _VALUES)
    deviates = np.asarray([normal_quantile((i + 0.5) / values) for i in range(values)])
    copies = [len(part) for part in np.array_split(np.arange(n), values)]  # with many cases, some share a value
    deviates = np.repeat(deviates, copies)
    deviates = deviates - deviates.mean()
    spread = float(np.std(deviates, ddof=1)) if n > 1 else 1.0
    return np.asarray(np.clip(centre + sd * deviates / spread, -1.0, 1.0), dtype=np.float64)


def cases_for_interval_rule(
    cases: int, sd: float, centre: Callable[[int], float], decides: Callable[[Mean], bool], *, one_sided: bool = False
) -> int:
    """Return the cases planned by t, or more if the bounded interval, which has to agree, needs more.

    There are enough cases if `decides` accepts typical differences around a centre, with the expected spread and with
    one as small as in one sample of 20.
    """
    while cases < _MOST_DRAWN and sd < _ALWAYS_T:
        low_ratio = max(0.0, 1 - _ONE_IN_20 / math.sqrt(2 * cases))
        samples = (
            Mean(typical(cases, centre(cases), spread), bounds=(-1.0, 1.0), span=1.0, one_sided=one_sided)
            for spread in (sd, low_ratio * sd)
        )
        if all(map(decides, samples)):
            break
        cases = math.ceil(1.15 * cases) + 1
    return cases


def fewest_cases(alpha: float = 0.05) -> int:
    """Return the fewest cases that can exclude 0, with a large difference in every case: 2^−n must be below alpha."""
    return math.floor(-math.log2(alpha)) + 1


def smallest_detectable(estimate: Mean | StudentMean, *, alpha: float = 0.05, beta: float = 0.2) -> float | None:
    """Return the smallest difference that a repeat of this experiment would detect with probability 1 − beta.

    It is read off the same kind of interval; None if no difference can be detected.
    """
    if isinstance(estimate, Mean) and not _surely_t(estimate):
        return _detectable_by_repeats(estimate, alpha, beta)
    if not estimate.std_err or estimate.freedom < 1:
        return None
    n = estimate.freedom + 1
    smallest = estimate.std_err * _standard_errors(n, alpha, beta, pilot=max(2, round(n)))
    return smallest if not isinstance(estimate, Mean) or smallest <= estimate.span else None


def is_rough(estimate: Mean) -> bool:
    """Return whether what these cases could detect is known roughly: other cases may show what none of them did.

    That is so where few cases account for the spread, or where differences are skewed: then the direction of an effect
    matters, and 4 of 5 may become 3 of 4.
    """
    if right_or_wrong(estimate):  # nothing larger can come
        return False
    rest = estimate.unit_values - (estimate.mean or 0.0)
    squares = float(estimate.unit_shares @ rest**2)
    return estimate.method == "bounded" or abs(float(estimate.unit_shares @ rest**3)) > _SKEWED * squares**1.5


def cases_like(estimate: Mean, cases: int, sd: float, delta: float, *, alpha: float, beta: float = 0.2) -> int:
    """Return the cases planned by t, or more if repeats drawn from these cases show that they are too few.

    `sd` is that of a case in the planned run, which may have other repeats.
    """
    stretch = sd / (estimate.std_err * math.sqrt(estimate.count)) if estimate.std_err else 1.0
    while cases < _MOST_DRAWN and not _surely_t(estimate, cases / estimate.count, stretch):
        if Repeats(estimate, cases, stretch=stretch).enough(delta, alpha, beta):
            break
        cases = math.ceil(1.1 * cases) + 1
    return cases


def _surely_t(estimate: Mean, more: float = 1.0, stretch: float = 1.0) -> bool:
    """Return whether repeats have a t interval whose formulas hold: they vary enough, and neither skew nor ties show.

    Repeats may have `more` times the units, which differ by `stretch` times as much.
    """
    if not estimate.exists or not math.isfinite(estimate.span):
        return True  # nothing can be drawn
    even = estimate.skew <= MOST_SKEW / 2 * math.sqrt(more) and estimate.units * more >= _MANY_UNITS
    least = (_SURE_SPREAD if estimate.tied < TIED else _MANY_UNITS) * LEAST_SPREAD
    return even and estimate.spread * more * stretch**2 >= least


def _detectable_by_repeats(estimate: Mean, alpha: float, beta: float) -> float | None:
    units = max(2, round(estimate.effective))
    if units < fewest_cases(alpha):
        return None
    guess = (estimate.std_err or 0.0) * _standard_errors(units, alpha, beta)
    return Repeats(estimate, units).smallest(alpha, beta, guess=max(guess, estimate.span / units))


def _fewest(chance: Callable[[int], float], room: float, alpha: float, beta: float) -> int:
    """Return the fewest cases for which the chance is 1 − beta; it grows with the number of cases."""
    guess = (normal_quantile(1 - alpha / 2) + normal_quantile(1 - beta)) ** 2 * room**2
    low, high = 1, max(2, math.ceil(min(guess, _MOST_CASES)))
    while high < _MOST_CASES and chance(high) < 1 - beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chance(middle) < 1 - beta else (low, middle)
    return high


def _averaged(chance: Callable[[Floats, Floats], Floats], n: float, sd: float, pilot: int | None) -> float:
    """Average a chance that depends on the true standard error and on the ratio of estimated to true deviation."""
    roots, weights = _estimates(n - 1)
    if pilot is None:
        return float(weights @ chance(np.asarray(sd / math.sqrt(n)), roots))
    ratios, shares = _estimates(pilot - 1)
    errors = sd / np.maximum(ratios, 1e-9) / math.sqrt(n)
    return float(shares @ chance(errors[:, None], roots[None, :]) @ weights)


@lru_cache(maxsize=512)
def _estimates(freedom: float) -> tuple[Floats, Floats]:
    """Return possible ratios of estimated to true deviation, √(χ²/ν), with Gauss–Legendre weights."""
    at, weights = _legendre()
    reach = 9 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - reach), 1 + reach
    x = (at + 1) / 2
    power_of_x = 3 if low == 0 else 1  # with few degrees of freedom, much of the mass is near 0: more nodes there
    s = low + (high - low) * x**power_of_x
    weights = weights * power_of_x * x ** (power_of_x - 1)
    log_density = (
        math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
        + (freedom - 1) * np.log(s) - freedom * s**2 / 2
    )  # fmt: skip
    density = weights * (high - low) / 2 * np.exp(log_density)
    return s, density / density.sum()


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss–Legendre quadrature, which take longer to find than all else here."""
    at, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(at, dtype=np.float64), np.asarray(weights, dtype=np.float64)
