"""One arm: the weighted mean over cases, and how far to trust it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import negligible, normal_quantile, t_quantile

Floats = NDArray[np.float64]
Scale = tuple[float | None, float | None]  # worst and best; None where there is no such bound


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of an arm over its cases. `ci95` is None where one value says nothing about spread."""

    mean: float | None
    std_dev: float | None
    min: float | None
    max: float | None
    count: int
    total_weight: float
    ci95: tuple[float, float] | None
    std_err: float | None = None
    method: str = "none"


def aggregate(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    scale: Scale = (0.0, 1.0),
) -> Aggregate:
    """The aggregate of per-case scores. A weight of 0 is shown elsewhere, not counted here.

    The interval is Wilson's for 0/1 scores (with unequal weights on Kish's effective number of cases), else
    Student-t on the weighted or cluster-robust standard error, clipped to the scale. `std_dev` is the plain
    sample deviation of the counted scores.
    """
    scores = np.asarray(values, dtype=np.float64)
    w = np.ones_like(scores) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = w > 0
    groups = None if clusters is None else np.asarray(clusters)[counted]
    scores, w = scores[counted], w[counted]
    n = len(scores)
    if n == 0:
        return Aggregate(
            mean=None,
            std_dev=None,
            min=None,
            max=None,
            count=0,
            total_weight=0.0,
            ci95=None,
            method="no scores",
        )
    mean = float(np.average(scores, weights=w))
    std_err, df, method = _standard_error(scores, w, mean, groups)
    if std_err is not None and negligible(std_err, float(np.abs(scores).max())):
        std_err = 0.0
    bounds = limits(scale, scores)
    interval: tuple[float, float] | None
    if method == "t" and tuple(scale) == (0.0, 1.0) and _is_binary(scores):
        interval, method = wilson(mean, float(w.sum() ** 2 / np.sum(w**2))), "wilson"
    elif std_err == 0 and all(math.isfinite(bound) for bound in bounds):
        # A few cases that happen to agree do not make it certain: as wide as if each were a yes or a no.
        units = float(w.sum() ** 2 / np.sum(w**2)) if method == "t" else df + 1.0
        interval, method = _as_share(mean, units, bounds), "wilson, nothing varies"
    else:
        interval = _t_interval(mean, std_err, df, bounds)
    return Aggregate(
        mean=mean,
        std_dev=float(np.std(scores, ddof=1)) if n > 1 else None,
        min=float(scores.min()),
        max=float(scores.max()),
        count=n,
        total_weight=float(w.sum()),
        ci95=interval,
        std_err=std_err,
        method=method,
    )


def _standard_error(
    scores: Floats, w: Floats, mean: float, groups: NDArray[Any] | None
) -> tuple[float | None, int, str]:
    """Standard error of the weighted mean, its degrees of freedom, and the name of the method."""
    n = len(scores)
    residuals = w * (scores - mean)
    if groups is not None:
        names, codes = np.unique(groups, return_inverse=True)
        if len(names) < n:
            count = len(names)
            if count < 2:
                return None, 0, "one cluster"
            sums = np.bincount(codes, weights=residuals)
            variance = float(np.sum(sums**2)) / float(w.sum()) ** 2 * count / (count - 1)
            return math.sqrt(variance), count - 1, "cluster-robust t"
    if n < 2:
        return None, 0, "n = 1"
    return math.sqrt(float(np.sum(residuals**2)) * n / (n - 1)) / float(w.sum()), n - 1, "t"


def _t_interval(mean: float, std_err: float | None, df: int, scale: tuple[float, float]) -> tuple[float, float] | None:
    if std_err is None:
        return None
    half = t_quantile(0.975, df) * std_err
    return max(scale[0], mean - half), min(scale[1], mean + half)


def limits(scale: Scale, values: Floats) -> tuple[float, float]:
    """Between what values can lie: the scale from below to above, without a bound that values have crossed."""
    worst, best = scale
    if worst is None:  # less is better, and nothing is too bad to be
        low, high = (-math.inf if best is None else best), math.inf
    else:
        low, high = (worst, math.inf) if best is None else (min(worst, best), max(worst, best))
    if len(values) and float(values.min()) < low:
        low = -math.inf
    if len(values) and float(values.max()) > high:
        high = math.inf
    return low, high


def _as_share(mean: float, units: float, scale: tuple[float, float]) -> tuple[float, float]:
    """Wilson's interval for a mean on a scale: no variable on it varies more than a yes or no of the same mean."""
    width = scale[1] - scale[0]
    low, high = wilson((mean - scale[0]) / width, units)
    return scale[0] + width * low, scale[0] + width * high


def _is_binary(scores: Floats) -> bool:
    return bool(np.all((scores == 0) | (scores == 1)))


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = normal_quantile(0.975)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
