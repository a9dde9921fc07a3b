"""Test whether an effect differs between groups of cases, for example between easy and hard ones."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import f_above

Floats = NDArray[np.float64]


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """A test of whether the mean differences of all groups are the same."""

    statistic: float
    p_value: float
    df: tuple[float, float]
    groups: int
    count: int
    method: str


def interaction(
    d: ArrayLike, groups: ArrayLike, clusters: ArrayLike | None = None, weights: ArrayLike | None = None
) -> Interaction | None:
    """Test with Welch's analysis of variance on the differences or, with clusters, a Wald test with jackknife errors.

    Groups with a single unit are left out; None if fewer than two groups remain, or nothing varies in one of them.
    """
    values, names = np.asarray(d, dtype=np.float64), np.asarray(groups)
    w = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    found, codes, sizes = np.unique(names, return_inverse=True, return_counts=True)
    units = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    if units is not None:
        sizes = np.asarray([len(np.unique(units[codes == code])) for code in range(len(found))])
    kept = (sizes > 1)[codes] & (w > 0)
    if np.sum(sizes > 1) < 2:
        return None
    values, w = values[kept], w[kept]
    codes = np.unique(codes[kept], return_inverse=True)[1]
    if units is None:
        return _welch(values, codes, w)
    units = np.unique(units[kept], return_inverse=True)[1]
    alone = int(units.max(initial=-1)) + 1 == len(values)
    return _welch(values, codes, w) if alone else _wald(values, codes, units, w)


def _welch(d: Floats, codes: NDArray[np.int64], w: Floats) -> Interaction | None:
    """Run Welch's test; unequal weights give weighted means, their variances and Kish's effective number of cases."""
    totals, counts = np.bincount(codes, weights=w), np.bincount(codes)
    k = len(totals)
    effective = totals**2 / np.bincount(codes, weights=w**2)
    means = np.bincount(codes, weights=w * d) / totals
    squares = np.bincount(codes, weights=w**2 * (d - means[codes]) ** 2)
    variances = squares / totals**2 * counts / (counts - 1)
    if np.any(effective <= 1) or np.any(np.sqrt(variances) <= 1e-12 * max(1.0, float(np.abs(d).max()))):
        return None
    precision = 1 / variances
    share = precision / precision.sum()
    middle = float(np.sum(share * means))
    spread = float(np.sum((1 - share) ** 2 / (effective - 1)))
    numerator = float(np.sum(precision * (means - middle) ** 2)) / (k - 1)
    f = numerator / (1 + 2 * (k - 2) / (k**2 - 1) * spread)
    df = (k - 1.0, (k**2 - 1) / (3 * spread))
    return Interaction(
        statistic=f, p_value=f_above(f, *df), df=df, groups=k, count=len(d), method="Welch's analysis of variance"
    )


def _wald(d: Floats, codes: NDArray[np.int64], units: NDArray[np.int64], w: Floats) -> Interaction | None:
    """Run a Wald test on weighted group means with their jackknife covariance over clusters.

    A cluster may be in several groups. Leaving clusters out in turn keeps the error rate at 5 % with few clusters,
    where the plain sandwich estimator exceeds it.
    """
    k, count = int(codes.max()) + 1, int(units.max()) + 1
    totals = np.bincount(codes, weights=w)
    means = np.bincount(codes, weights=w * d) / totals
    cells = units * k + codes
    scores = np.bincount(cells, weights=w * (d - means[codes]), minlength=count * k).reshape(count, k)
    sizes = np.bincount(cells, weights=w, minlength=count * k).reshape(count, k)
    left_out = -scores / (totals - sizes)  # the change in each mean without a cluster
    covariance = (count - 1) / count * left_out.T @ left_out
    contrast = np.hstack([np.ones((k - 1, 1)), -np.eye(k - 1)])
    gaps, spread = contrast @ means, contrast @ covariance @ contrast.T
    if count <= k or np.linalg.matrix_rank(spread) < k - 1:
        return None
    # Hotelling: the covariance of the k − 1 gaps is itself estimated from `count` clusters.
    f = float(gaps @ np.linalg.solve(spread, gaps)) * (count - k + 1) / ((count - 1) * (k - 1))
    df = (k - 1.0, count - k + 1.0)
    return Interaction(statistic=f, p_value=f_above(f, *df), df=df, groups=k, count=len(d), method="cluster jackknife")
