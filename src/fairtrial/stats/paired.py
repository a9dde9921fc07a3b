"""Two arms on the same cases: the mean difference, and how far to trust it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from fairtrial.stats.distributions import t_quantile, t_two_sided


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the differences a − b over cases. What cannot be said is None, and `method` tells why."""

    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None
    std_err: float | None
    std_dev: float | None
    count: int
    method: str


def paired(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> Paired:
    """Student-t on the differences; with clusters, on the cluster-robust standard error with C − 1 degrees."""
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    n = len(d)
    if n == 0:
        return Paired(
            difference=None, ci95=None, p_value=None, std_err=None, std_dev=None, count=0, method="no common cases"
        )
    mean = float(d.mean())
    spread = float(np.std(d, ddof=1)) if n > 1 else None
    codes = np.arange(n) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
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
        )
    sums = np.bincount(codes, weights=d - mean)
    error = math.sqrt(float(np.sum(sums**2)) * count / (count - 1)) / n
    half = t_quantile(0.975, count - 1) * error
    return Paired(
        difference=mean,
        ci95=(mean - half, mean + half),
        p_value=_p_value(mean, error, count - 1),
        std_err=error,
        std_dev=spread,
        count=n,
        method="paired t" if count == n else "paired t, cluster-robust",
    )


def _p_value(mean: float, error: float, freedom: int) -> float | None:
    """Two-sided. Where no difference varies, there is no test."""
    return None if error == 0 else t_two_sided(mean / error, freedom)
