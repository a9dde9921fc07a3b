"""One arm: the weighted mean over cases, with its confidence interval."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.mean import ALPHA, Mean
from fairtrial.stats.units import Interval, Measured

Floats = NDArray[np.float64]
Bounds = tuple[float | None, float | None]  # worst and best; None where there is no such bound


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of an arm over its cases. `ci95` is None if a single value says nothing about the spread."""

    mean: Measured | None
    std_dev: Measured | None
    min: Measured | None
    max: Measured | None
    count: int
    total_weight: float
    ci95: Interval | None
    std_err: Measured | None = None
    method: str = "none"
    rough: bool = False  # few cases account for the spread, and no scale bounds what others could be


def aggregate(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    scale: Bounds = (0.0, 1.0),
    alpha: float = ALPHA,
    *,
    one_sided: bool = False,
) -> Aggregate:
    """Aggregate per-case scores. Cases of weight 0 are shown elsewhere, not counted here.

    The interval is that of `Mean`. `std_dev` is the plain sample standard deviation of the
    counted scores. `ci95` is another interval only where another `alpha` is given.
    """
    scores = np.asarray(values, dtype=np.float64)
    w = np.ones_like(scores) if weights is None else np.asarray(weights, dtype=np.float64)
    counted = w > 0
    groups = None if clusters is None else np.asarray(clusters)[counted]
    scores, w = scores[counted], w[counted]
    estimate = Mean(scores, w, groups, bounds=limits(scale, scores), one_sided=one_sided)
    any_scores = len(scores) > 0
    return Aggregate(
        mean=estimate.mean,
        std_dev=float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        min=float(scores.min()) if any_scores else None,
        max=float(scores.max()) if any_scores else None,
        count=estimate.count,
        total_weight=float(w.sum()),
        ci95=estimate.interval(alpha),
        std_err=estimate.std_err,
        method=estimate.method_words,
        rough=estimate.rough,
    )


def limits(scale: Bounds, values: Floats) -> tuple[float, float]:
    """Return the lower and upper limit of values: those of the scale, unless a value lies beyond them."""
    worst, best = scale
    if worst is None:  # lower is better, and there is no worst value
        low, high = (-math.inf if best is None else best), math.inf
    else:
        low, high = (worst, math.inf) if best is None else (min(worst, best), max(worst, best))
    if len(values) and float(values.min()) < low:
        low = -math.inf
    if len(values) and float(values.max()) > high:
        high = math.inf
    return low, high
