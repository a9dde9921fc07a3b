"""How far judges agree: Krippendorff's α and weighted Cohen's κ, with intervals over the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]
Weights = Literal["none", "linear", "quadratic"]


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """An agreement coefficient. None where it is not defined: nobody disagreed because nothing varied."""

    value: float | None
    ci95: tuple[float, float] | None
    items: int
    raters: int
    method: str
    resamples: int = 0


def krippendorff_alpha(
    ratings: ArrayLike, level: Level = "interval", *, resamples: int = 1000, seed: int = 0
) -> Agreement:
    """Krippendorff's α of a raters × items matrix; NaN is a missing rating. Items rated once say nothing."""
    matrix = np.asarray(ratings, dtype=np.float64)
    values, counts = _value_counts(matrix)
    counts = counts[counts.sum(axis=1) >= 2]
    ones = np.ones(len(counts))
    alpha = _alpha(values, counts, ones, level)
    interval = None
    if alpha is not None and len(counts) > 1:
        interval = _over_items(lambda w: _alpha(values, counts, w, level), len(counts), resamples, seed)
    return Agreement(
        value=alpha,
        ci95=interval,
        items=len(counts),
        raters=matrix.shape[0],
        method=f"Krippendorff's α, {level}",
        resamples=resamples if interval else 0,
    )


def _value_counts(matrix: Floats) -> tuple[Floats, Floats]:
    """The distinct values, and how often each item got each of them (items × values)."""
    known = ~np.isnan(matrix)
    values, codes = np.unique(matrix[known], return_inverse=True)
    items = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)[known]
    counts = np.zeros((matrix.shape[1], len(values)))
    np.add.at(counts, (items, codes), 1)
    return values, counts


def _alpha(values: Floats, counts: Floats, weights: Floats, level: Level) -> float | None:
    """1 − observed / expected disagreement, with each item counted `weights` times."""
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
    """Squared distances between values."""
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "interval":
        return (values[:, None] - values[None, :]) ** 2
    middle = np.cumsum(totals) - totals / 2
    return (middle[:, None] - middle[None, :]) ** 2


def cohen_kappa(
    a: ArrayLike, b: ArrayLike, weights: Weights = "quadratic", *, resamples: int = 1000, seed: int = 0
) -> Agreement:
    """Cohen's κ of two raters over the same items; distances count in steps between the categories seen."""
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    known = ~(np.isnan(one) | np.isnan(other))
    one, other = one[known], other[known]
    categories, codes = np.unique(np.concatenate([one, other]), return_inverse=True)
    rows, columns = codes[: len(one)], codes[len(one) :]
    step = np.abs(np.subtract.outer(np.arange(len(categories)), np.arange(len(categories)))).astype(np.float64)
    cost = {"none": (step > 0).astype(np.float64), "linear": step, "quadratic": step**2}[weights]

    def kappa(w: Floats) -> float | None:
        table = np.zeros((len(categories), len(categories)))
        np.add.at(table, (rows, columns), w)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(w.sum(), 1)
        chance = float(np.sum(cost * expected))
        return None if chance == 0 else 1.0 - float(np.sum(cost * table)) / chance

    value = kappa(np.ones(len(one)))
    interval = _over_items(kappa, len(one), resamples, seed) if value is not None and len(one) > 1 else None
    return Agreement(
        value=value,
        ci95=interval,
        items=len(one),
        raters=2,
        method=f"Cohen's κ, weights {weights}",
        resamples=resamples if interval else 0,
    )


def effective_judges(ratings: ArrayLike) -> float | None:
    """How many independent judges a panel is worth: n/(1 + (n − 1)ρ̄), ρ̄ the mean correlation between them."""
    matrix = np.asarray(ratings, dtype=np.float64)
    matrix = matrix[:, ~np.isnan(matrix).any(axis=0)]
    n = matrix.shape[0]
    if n < 2 or matrix.shape[1] < 3 or np.any(matrix.std(axis=1) == 0):
        return None
    correlations = np.asarray(np.corrcoef(matrix))[np.triu_indices(n, 1)]
    return float(n / (1 + (n - 1) * max(0.0, float(correlations.mean()))))


def _over_items(
    statistic: Callable[[Floats], float | None], items: int, resamples: int, seed: int
) -> tuple[float, float] | None:
    """A percentile interval from resampling items."""
    rng = np.random.default_rng(seed)
    draws = (statistic(w) for w in rng.multinomial(items, np.full(items, 1 / items), resamples).astype(np.float64))
    found = np.asarray([draw for draw in draws if draw is not None])
    if len(found) < max(1, resamples / 2):
        return None
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)
