"""Bootstrap intervals from resampling cases or clusters, never single rows as if they were independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import normal_cdf, normal_quantile, t_quantile

Floats = NDArray[np.float64]
_CHUNK = 4_000_000  # numbers in memory at once
_FEW_KINDS = 4  # units per distinct kind from which drawing kinds instead of units is faster


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """The mean with its bias-corrected and accelerated interval."""

    mean: float
    ci: tuple[float, float] | None
    level: float
    resamples: int
    seed: int
    units: int
    method: str = "BCa"


def bootstrap_ci(
    values: ArrayLike | Sequence[ArrayLike],
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    expand: bool = True,
) -> Bootstrap:
    """Return the BCa interval of the (weighted) mean over cases.

    `values` has one number per case, or the repeats of each case. Repeats are averaged and resampled with their case:
    its mean already varies by them, and resampling them as well would count their noise twice (98.7 % coverage in
    simulation). With clusters, whole clusters are resampled. `expand` widens the interval for few units as Student's t
    does (Hesterberg's expanded percentiles); without it, the interval is plain BCa.
    """
    means = _by_case(values)
    w = np.ones(len(means)) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = w > 0
    means, w = means[counted], w[counted]
    n = len(means)
    if n == 0:
        raise ValueError("no values")
    names = np.arange(n) if clusters is None else np.asarray(clusters)[counted]
    groups = np.unique(names, return_inverse=True)[1]
    units = int(groups.max()) + 1
    mean = float(np.average(means, weights=w))
    common = {"mean": mean, "level": level, "resamples": resamples, "seed": seed, "units": units}
    if units < 2:
        return Bootstrap(ci=None, **common)  # type: ignore[arg-type]
    sums = np.bincount(groups, weights=w * means).astype(np.float64)
    counts = np.bincount(groups, weights=w).astype(np.float64)
    draws = _draws(sums, counts, resamples, seed)
    interval = _bca(draws, mean, _jackknife(sums, counts), level, expand=expand)
    return Bootstrap(ci=interval, **common)  # type: ignore[arg-type]


def _by_case(values: ArrayLike | Sequence[ArrayLike]) -> Floats:
    try:
        flat = np.asarray(values, dtype=np.float64)
    except ValueError:  # cases have different numbers of repeats
        return np.asarray([np.asarray(case, dtype=np.float64).mean() for case in values])  # type: ignore[union-attr]
    return flat if flat.ndim == 1 else flat.mean(axis=1)


def _draws(sums: Floats, counts: Floats, resamples: int, seed: int) -> Floats:
    """Return the means of resampled units.

    Identical units need not be distinguished: how often each kind of unit is drawn is multinomial, which is many times
    faster if there are few kinds (scores of 0 and 1).
    """
    rng = np.random.default_rng(seed)
    units = len(sums)
    kinds, often = np.unique(np.stack([sums, counts], axis=1), axis=0, return_counts=True)
    few = len(kinds) * _FEW_KINDS < units
    means = np.empty(resamples)
    step = max(1, _CHUNK // (len(kinds) if few else units))
    for start in range(0, resamples, step):
        stop = min(resamples, start + step)
        if few:
            total, weight = (rng.multinomial(units, often / units, stop - start) @ kinds).T
        else:
            chosen = _chosen(units, resamples, seed) if step >= resamples else _drawn(rng, units, stop - start)
            total, weight = _sums(sums, chosen), _sums(counts, chosen)
        means[start:stop] = total / weight
    return means


def _drawn(rng: np.random.Generator, units: int, resamples: int) -> NDArray[np.int32]:
    """Return which units each resample consists of."""
    return rng.integers(0, units, (resamples, units), dtype=np.int32)


@lru_cache(maxsize=1)
def _chosen(units: int, resamples: int, seed: int) -> NDArray[np.int32]:
    """Return the same for all resamples at once; the pairs of a run have the same cases, one pair after the other."""
    return _drawn(np.random.default_rng(seed), units, resamples)


def _sums(column: Floats, chosen: NDArray[np.int32]) -> Floats | float:
    """Return sums over the chosen units, without a lookup if all units are the same."""
    if np.all(column == column[0]):
        return float(column[0] * chosen.shape[1])
    return np.asarray(column[chosen].sum(axis=1), dtype=np.float64)


def _jackknife(sums: Floats, counts: Floats) -> Floats:
    """Return the mean with each unit left out in turn."""
    return np.asarray((sums.sum() - sums) / (counts.sum() - counts), dtype=np.float64)


def _bca(draws: Floats, mean: float, jackknife: Floats, level: float, *, expand: bool) -> tuple[float, float]:
    below = (np.sum(draws < mean) + np.sum(draws == mean) / 2) / len(draws)
    if below in (0.0, 1.0):  # nothing varies
        return float(draws.min()), float(draws.max())
    z0 = normal_quantile(float(below))
    away = jackknife.mean() - jackknife
    spread = float(np.sum(away**2)) ** 1.5
    acceleration = float(np.sum(away**3)) / (6 * spread) if spread > 0 else 0.0
    n = len(jackknife)
    half_width = normal_quantile((1 + level) / 2)
    if expand:
        half_width = math.sqrt(n / (n - 1)) * t_quantile((1 + level) / 2, n - 1)
    bounds = []
    for side in (-half_width, half_width):
        z = z0 + side
        bounds.append(normal_cdf(z0 + z / (1 - acceleration * z)))
    low, high = np.quantile(draws, bounds)
    return float(low), float(high)
