"""Two arms on the same cases: the mean difference, and how far to trust it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.distributions import negligible, normal_cdf, t_cdf, t_quantile, t_two_sided

_EXACT = 12


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the differences a − b over cases. What cannot be said is None, and `method` tells why."""

    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None
    std_err: float | None
    std_dev: float | None
    count: int
    method: str
    units: int = 0  # clusters, or cases where there are none


def paired(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None, weights: ArrayLike | None = None) -> Paired:
    """Student-t on the differences; with clusters, on the cluster-robust standard error with C − 1 degrees.

    With weights it is the weighted mean, with the standard error of one: √Σw²(d − m)² / Σw · √(n/(n − 1)).
    """
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    w = np.ones(len(d)) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = w > 0
    d, w = d[counted], w[counted]
    groups = None if clusters is None else np.asarray(clusters)[counted]
    n = len(d)
    if n == 0:
        return Paired(
            difference=None, ci95=None, p_value=None, std_err=None, std_dev=None, count=0, method="no common cases"
        )
    mean = float(np.average(d, weights=w))
    spread = float(np.std(d, ddof=1)) if n > 1 else None
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count < 2:
        return Paired(
            difference=mean,
            ci95=None,
            p_value=None,
            std_err=None,
            std_dev=spread,
            count=n,
            method="one case" if n == 1 else "one cluster",
            units=count,
        )
    sums = np.bincount(codes, weights=w * (d - mean))
    error = math.sqrt(float(np.sum(sums**2)) * count / (count - 1)) / float(w.sum())
    if negligible(error, float(np.abs(d).max())):
        error = 0.0
    half = t_quantile(0.975, count - 1) * error
    return Paired(
        difference=mean,
        ci95=(mean - half, mean + half),
        p_value=_p_value(mean, error, count - 1),
        std_err=error,
        std_dev=spread,
        count=n,
        method="paired t" if count == n else "paired t, cluster-robust",
        units=count,
    )


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
    """Whether a difference is smaller than what matters."""

    equivalent: bool
    margin: float
    p_value: float
    ci90: tuple[float, float]


def equivalence(
    d: ArrayLike, margin: float, clusters: ArrayLike | None = None, weights: ArrayLike | None = None
) -> Equivalence | None:
    """Two one-sided tests at 5 %: the 90 % interval lies inside ±margin. None where nothing can be said."""
    if margin <= 0:
        raise ValueError("the margin must be above 0")
    values = np.asarray(d, dtype=np.float64)
    found = paired(values, np.zeros(len(values)), clusters, weights)
    if found.std_err is None or found.difference is None or found.std_err == 0:
        return None
    half = t_quantile(0.95, found.units - 1) * found.std_err
    closest = (margin - abs(found.difference)) / found.std_err
    return Equivalence(
        equivalent=abs(found.difference) + half < margin,
        margin=margin,
        p_value=t_cdf(-closest, found.units - 1),
        ci90=(found.difference - half, found.difference + half),
    )


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


def _p_value(mean: float, error: float, freedom: int) -> float | None:
    """Two-sided. Where no difference varies, there is no test."""
    return None if error == 0 else t_two_sided(mean / error, freedom)
