"""Agreement of judges: Krippendorff's α and weighted Cohen's κ, with intervals over the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import negligible

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]
Weights = Literal["none", "linear", "quadratic"]


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement coefficient. `value` is None where it is undefined: without variation there is no disagreement."""

    value: float | None
    ci95: tuple[float, float] | None
    items: int
    raters: int
    method: str
    resamples: int = 0


def krippendorff_alpha(
    ratings: ArrayLike,
    level: Level = "interval",
    *,
    clusters: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Return Krippendorff's α of a raters × items matrix; NaN is a missing rating. Items rated once are ignored.

    Items of one cluster (answers to one case) are alike, so the interval resamples clusters.
    """
    matrix = np.asarray(ratings, dtype=np.float64)
    usable = np.sum(~np.isnan(matrix), axis=0) >= 2
    groups = None if clusters is None else np.asarray(clusters)[usable]
    statistic = _interval_alpha(matrix[:, usable]) if level == "interval" else _table_alpha(matrix[:, usable], level)
    count = int(usable.sum())
    alpha = statistic(np.ones(count)) if count else None
    interval = None
    if alpha is not None and count > 1:
        interval = _over_items(statistic, count, groups, resamples, seed)
    return Agreement(
        value=alpha,
        ci95=interval,
        items=count,
        raters=matrix.shape[0],
        method=f"Krippendorff's α, {level}",
        resamples=resamples if interval else 0,
    )


def _interval_alpha(matrix: Floats) -> Callable[[Floats], float | None]:
    """Return α at the interval level as a function of item weights; squared distances need only the items' moments."""
    known = ~np.isnan(matrix)
    centred = np.where(known, matrix - np.nanmean(matrix), 0.0) if matrix.size else matrix
    number = known.sum(axis=0).astype(np.float64)
    first, second = centred.sum(axis=0), (centred**2).sum(axis=0)
    within = 2 * (number * second - first**2) / (number - 1)

    def alpha(w: Floats) -> float | None:
        n = float(w @ number)
        expected = 2 * (n * float(w @ second) - float(w @ first) ** 2)
        if n <= 1 or expected <= 1e-12 * n * n:
            return None
        return 1.0 - (n - 1) * float(w @ within) / expected

    return alpha


def _table_alpha(matrix: Floats, level: Level) -> Callable[[Floats], float | None]:
    values, counts = _value_counts(matrix)
    return lambda w: _alpha(values, counts, w, level)


def _value_counts(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values, and how often each item got each of them (items × values)."""
    known = ~np.isnan(matrix)
    values, codes = np.unique(matrix[known], return_inverse=True)
    items = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)[known]
    counts = np.zeros((matrix.shape[1], len(values)))
    np.add.at(counts, (items, codes), 1)
    return values, counts


def _alpha(values: Floats, counts: Floats, weights: Floats, level: Level) -> float | None:
    """Return 1 − observed / expected disagreement, with each item counted `weights` times."""
    per_item = weights / (counts.sum(axis=1) - 1)
    observed = (counts * per_item[:, None]).T @ counts - np.diag(per_item @ counts)
    totals = observed.sum(axis=1)
    distance = _distance(values, totals, level)
    n = float(totals.sum())
    expected = float(totals @ distance @ totals)
    if n <= 1 or expected == 0:
        return None
    return 1.0 - (n - 1) * float(np.sum(observed * distance)) / expected


def _distance(values: Floats, totals: Floats, level: Level) -> Floats:
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    middle = np.cumsum(totals) - totals / 2
    return (middle[:, None] - middle[None, :]) ** 2


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    weights: Weights = "quadratic",
    *,
    clusters: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Return Cohen's κ of two raters over the same items; a disagreement is weighted by the distance of the two values.

    Items of one cluster (answers to one case) are alike, so the interval resamples clusters.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    rated = ~(np.isnan(first) | np.isnan(second))
    first, second = first[rated], second[rated]
    groups = None if clusters is None else np.asarray(clusters)[rated]
    categories, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    rows, columns = codes[: len(first)], codes[len(first) :]
    step = np.abs(np.subtract.outer(categories, categories))
    cost = {"none": (step > 0).astype(np.float64), "linear": step, "quadratic": step**2}[weights]

    def kappa(w: Floats) -> float | None:
        size = len(categories)
        table = np.bincount(rows * size + columns, weights=w, minlength=size * size).reshape(size, size)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(w.sum(), 1)
        chance = float(np.sum(cost * expected))
        return None if chance == 0 else 1.0 - float(np.sum(cost * table)) / chance

    value = kappa(np.ones(len(first)))
    interval = _over_items(kappa, len(first), groups, resamples, seed) if value is not None and len(first) > 1 else None
    return Agreement(
        value=value,
        ci95=interval,
        items=len(first),
        raters=2,
        method=f"Cohen's κ, weights {weights}",
        resamples=resamples if interval else 0,
    )


def effective_judges(errors: ArrayLike) -> float | None:
    """Return how many independent judges a panel is worth: n/(1 + (n − 1)ρ̄), ρ̄ the mean correlation of their *errors*.

    `errors` is judges × items: by how much each judge is off. The scores themselves cannot be used: good judges agree
    because the answers differ, and that makes them no less independent.
    """
    matrix = np.asarray(errors, dtype=np.float64)
    matrix = matrix[:, ~np.isnan(matrix).any(axis=0)]
    n = matrix.shape[0]
    if n < 2 or matrix.shape[1] < 3 or any(negligible(row.std(), np.abs(row).max()) for row in matrix):
        return None
    correlations = np.asarray(np.corrcoef(matrix))[np.triu_indices(n, 1)]
    return float(n / (1 + (n - 1) * max(0.0, float(correlations.mean()))))


def _over_items(
    statistic: Callable[[Floats], float | None],
    items: int,
    clusters: NDArray[Any] | None,
    resamples: int,
    seed: int,
) -> tuple[float, float] | None:
    """Return a percentile interval from resampling items, or clusters of them; None if there is only one."""
    rng = np.random.default_rng(seed)
    codes = np.arange(items) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count < 2:
        return None
    even = np.full(count, 1 / count)
    draws = (statistic(rng.multinomial(count, even).astype(np.float64)[codes]) for _ in range(resamples))
    defined = np.asarray([draw for draw in draws if draw is not None])
    if len(defined) < max(1, resamples / 2):
        return None
    low, high = (float(bound) for bound in np.percentile(defined, [2.5, 97.5]))
    return (low, high) if low < high else None  # if all items agree, nothing shows how rare a disagreement is
