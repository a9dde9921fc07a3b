"""Two arms on the same cases: the mean difference, and how far to trust it."""

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
    """The mean of the differences a − b over cases. What cannot be said is None, and `method` tells why."""

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
    """The mean difference with the interval of `Mean`; without one where values lie outside their scale, or alone."""
    d, found = np.subtract(a, b, dtype=np.float64), mean_difference(a, b, clusters, weights, scale=scale)
    counted = d if weights is None else d[np.asarray(weights, dtype=np.float64) > 0]
    return Paired(
        difference=found.mean,
        ci95=found.interval(),
        p_value=found.p_value(),
        std_err=found.std_err,
        std_dev=float(np.std(counted, ddof=1)) if len(counted) > 1 else None,
        count=found.count,
        method=_METHODS.get(found.method, found.method_words),
        units=found.units,
    )


def mean_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    scale: Bounds = (0.0, 1.0),
    most: float | None = None,
) -> Mean:
    """The mean of a − b, at whatever level it is asked for. `most` is the largest difference that a case can show,
    where that is known to be less than the scale allows."""
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    low, high = limits(scale, np.concatenate([one, other]))
    d, span = one - other, high - low
    if most is not None and most < span:
        seen = float(np.abs(d).max(initial=0.0))
        if seen > most * (1 + 1e-9):
            raise ValueError(f"a case differs by {seen:g}, more than the {most:g} that was declared as the most")
        span = most
    return Mean(d, weights, clusters, bounds=(-span, span), span=span)


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """0/1 scores on the same cases: how often only one of the two was right."""

    only_a: int
    only_b: int
    p_value: float


def mcnemar(a: ArrayLike, b: ArrayLike) -> McNemar:
    """The exact test: of the cases where only one was right, is it one of them more often than chance?"""
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    only_a, only_b = int(np.sum(one > other)), int(np.sum(one < other))
    return McNemar(only_a=only_a, only_b=only_b, p_value=_binomial_two_sided(min(only_a, only_b), only_a + only_b))


def _binomial_two_sided(k: int, n: int) -> float:
    """P(at least as uneven as k of n) with a fair coin."""
    if n == 0:
        return 1.0
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2) for i in range(k + 1)]
    return min(1.0, 2 * math.fsum(math.exp(value) for value in logs))


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a difference is smaller than what matters: its interval lies inside ±margin.

    `p_value` is the largest alpha at which the 1 − alpha interval still reaches out of the margin.
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
    """Of differences that are at most `most`. None where nothing can be said."""
    if margin <= 0:
        raise ValueError("the margin must be above 0")
    values = np.asarray(d, dtype=np.float64)
    found = mean_difference(values, np.zeros(len(values)), clusters, weights, scale=(-most, most), most=most)
    p = found.p_within(margin)
    return None if p is None else Equivalence(equivalent=p < ALPHA, margin=margin, p_value=p)


def sign_flip(d: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> float:
    """The permutation p-value of a mean difference: under the null each sign could be the other one.

    Exact for up to 12 differences, else from random signs, the observed ones among them.
    """
    values = np.asarray(d, dtype=np.float64)
    n = len(values)
    observed = abs(float(values.sum())) - 1e-12 * float(np.abs(values).sum())
    if n <= _EXACT:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ values) >= observed))
    rng = np.random.default_rng(seed)
    sizes, often = np.unique(np.abs(values[values != 0]), return_counts=True)
    few = len(sizes) * 4 < n  # then it is quicker to draw how many of each size get a plus
    extreme, left = 0, resamples
    while left:
        chunk = min(left, max(1, 4_000_000 // n))
        if few:
            sums = (2 * rng.binomial(often, 0.5, (chunk, len(sizes))) - often) @ sizes
        else:
            width = -(-n // 8)
            bits = np.frombuffer(rng.bytes(chunk * width), dtype=np.uint8).reshape(chunk, width)
            sums = 2 * (np.unpackbits(bits, axis=1, count=n) @ values) - values.sum()
        extreme += int(np.sum(np.abs(sums) >= observed))
        left -= chunk
    return (extreme + 1) / (resamples + 1)


def wilcoxon(d: ArrayLike) -> float | None:
    """Wilcoxon's signed-rank test: exact for up to 12 differences, else the normal approximation; 0 is left out."""
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
    """The share of cases on which a is ahead; ties count half."""
    values = np.asarray(d, dtype=np.float64)
    return float(np.mean(values > 0) + np.mean(values == 0) / 2)
