"""Two arms on the same cases: the mean difference with its interval, and tests of it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.distributions import normal_cdf
from fairtrial.stats.mean import ALPHA, Mean
from fairtrial.stats.one_arm import Bounds, limits
from fairtrial.stats.units import Interval, Measured

_EXACT = 12
_METHODS = {"no scores": "no common cases", "n = 1": "one case"}


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the differences a − b over cases. Results that cannot be computed are None; `method` says why."""

    difference: Measured | None
    ci95: Interval | None
    p_value: float | None
    std_err: Measured | None
    std_dev: Measured | None
    count: int
    method: str
    units: int = 0  # clusters, or cases where there are none


def paired(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    scale: Bounds = (0.0, 1.0),
) -> Paired:
    """Return the mean difference with the interval of `Mean`, or without one for a single value or off the scale."""
    d, mean = np.subtract(a, b, dtype=np.float64), mean_difference(a, b, clusters, weights, scale=scale)
    counted = d if weights is None else d[np.asarray(weights, dtype=np.float64) > 0]
    return Paired(
        difference=mean.mean,
        ci95=mean.interval(),
        p_value=mean.p_value(),
        std_err=mean.std_err,
        std_dev=float(np.std(counted, ddof=1)) if len(counted) > 1 else None,
        count=mean.count,
        method=_METHODS.get(mean.method, mean.method_words),
        units=mean.units,
    )


def mean_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    scale: Bounds = (0.0, 1.0),
    most: float | None = None,
    one_sided: bool = False,
) -> Mean:
    """Return the mean of a − b, with intervals at any level.

    `most` is the largest difference that a case can show, if that is known to be less than the scale allows;
    `one_sided` if each limit is a claim of its own.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    low, high = limits(scale, np.concatenate([first, second]))
    d, span = first - second, high - low
    if most is not None and most < span:
        largest = float(np.abs(d).max(initial=0.0))
        if largest > most * (1 + 1e-9):
            raise ValueError(f"a case differs by {largest:g}, more than the stated largest difference of {most:g}")
        span = most
    return Mean(d, weights, clusters, bounds=(-span, span), span=span, one_sided=one_sided)


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """0/1 scores on the same cases: how often only one of the two arms was right."""

    only_a: int
    only_b: int
    p_value: float


def mcnemar(a: ArrayLike, b: ArrayLike) -> McNemar:
    """Run McNemar's exact test: among cases where only one arm was right, is it one arm more often than by chance?"""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    only_a, only_b = int(np.sum(first > second)), int(np.sum(first < second))
    return McNemar(only_a=only_a, only_b=only_b, p_value=_binomial_two_sided(min(only_a, only_b), only_a + only_b))


def _binomial_two_sided(k: int, n: int) -> float:
    """Return the probability of a split at least as uneven as k of n with a fair coin."""
    if n == 0:
        return 1.0
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2) for i in range(k + 1)]
    return min(1.0, 2 * math.fsum(math.exp(value) for value in logs))


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a difference is smaller than the margin that matters: its interval lies inside ±margin.

    `p_value` is the largest alpha at which the 1 − alpha interval still reaches beyond the margin.
    """

    equivalent: bool
    margin: Measured
    p_value: float


def equivalence(
    d: ArrayLike,
    margin: float,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    most: float = 1.0,
) -> Equivalence | None:
    """Test the equivalence of differences that are at most `most`; None if there is no interval."""
    if margin <= 0:
        raise ValueError("the margin must be above 0")
    values = np.asarray(d, dtype=np.float64)
    mean = mean_difference(values, np.zeros(len(values)), clusters, weights, scale=(-most, most), most=most)
    p = mean.p_within(margin)
    return None if p is None else Equivalence(equivalent=p < ALPHA, margin=margin, p_value=p)


def sign_flip(d: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Return the permutation p-value of a mean difference: under the null hypothesis each sign is equally likely.

    Exact for up to 12 differences, otherwise from random signs, counting the observed ones among them.
    """
    values = np.asarray(d, dtype=np.float64)
    n = len(values)
    observed = abs(float(values.sum())) - 1e-12 * float(np.abs(values).sum())
    if n <= _EXACT:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ values) >= observed))
    rng = np.random.default_rng(seed)
    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    few = len(sizes) * 4 < n  # then it is faster to draw how many of each size are positive
    extreme, remaining = 0, resamples
    while remaining:
        chunk = min(remaining, max(1, 4_000_000 // n))
        if few:
            sums = (2 * rng.binomial(counts, 0.5, (chunk, len(sizes))) - counts) @ sizes
        else:
            width = -(-n // 8)
            bits = np.frombuffer(rng.bytes(chunk * width), dtype=np.uint8).reshape(chunk, width)
            sums = 2 * (np.unpackbits(bits, axis=1, count=n) @ values) - values.sum()
        extreme += int(np.sum(np.abs(sums) >= observed))
        remaining -= chunk
    return (extreme + 1) / (resamples + 1)


def wilcoxon(d: ArrayLike) -> float | None:
    """Run Wilcoxon's signed-rank test without zeros: exact for up to 12 differences, else normal approximation."""
    values = np.asarray(d, dtype=np.float64)
    values = values[values != 0]
    n = len(values)
    if n == 0:
        return None
    _, codes, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    if n <= _EXACT:
        return sign_flip(np.copysign(ranks, values))
    positive = float(ranks[values > 0].sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - float(np.sum(counts**3 - counts)) / 48
    z = (positive - n * (n + 1) / 4) / math.sqrt(variance)
    return 2 * normal_cdf(-abs(z))


def superiority(d: ArrayLike) -> float:
    """Return the share of cases on which a is ahead; ties count half."""
    values = np.asarray(d, dtype=np.float64)
    return float(np.mean(values > 0) + np.mean(values == 0) / 2)
