"""Item analysis: how hard cases are, whether they tell arms apart, and how many cases would be enough."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.units import Measured

Floats = NDArray[np.float64]
_FEWEST_ARMS = 3  # a correlation over two arms shows only which of them was better


class Item(msgspec.Struct, frozen=True):
    """One case over all arms: its mean score, and the correlation of its scores with those on the other cases."""

    mean: float
    discrimination: float | None  # item-rest correlation; None with fewer than three arms, or if nothing varies


def items(scores: Floats) -> list[Item]:
    """Analyse every case of a matrix of mean scores 0–1, arms × cases."""
    cases = scores.shape[1]
    total = scores.sum(axis=1)
    return [
        Item(
            float(scores[:, case].mean()), _correlation(scores[:, case], (total - scores[:, case]) / max(1, cases - 1))
        )
        for case in range(cases)
    ]


def _correlation(own: Floats, rest: Floats) -> float | None:
    if len(own) < _FEWEST_ARMS or np.ptp(own) < 1e-12 or np.ptp(rest) < 1e-12:
        return None
    return float(np.corrcoef(own, rest)[0, 1])


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """A number of cases drawn evenly from easy to hard: how often they keep the order of the arms, and at what cost."""

    cases: int
    kept: float  # the share of draws in which every better arm still has the higher mean
    off: Measured  # root mean square error of an arm's mean against the one over all cases, over draws
    wider: float  # factor by which intervals over cases get wider


def subsets(
    scores: Floats,
    better: NDArray[np.bool_],
    sizes: list[int],
    weights: Floats | None = None,
    *,
    draws: int = 200,
    seed: int = 0,
) -> list[Subset]:
    """Evaluate smaller sets of cases; `better[i, j]` says that arm i is better than arm j on all cases."""
    rng = np.random.default_rng(seed)
    order = np.argsort(scores.mean(axis=0), kind="stable")
    winners, losers = np.nonzero(better)
    w = np.ones(scores.shape[1]) if weights is None else weights
    whole = _mean(scores, w)
    results = []
    for size in sizes:
        chosen = [evenly(order, size, rng) for _ in range(draws)]
        means = np.asarray([_mean(scores[:, cases], w[cases]) for cases in chosen])
        kept = np.all(means[:, winners] > means[:, losers], axis=1) if len(winners) else np.ones(draws)
        results.append(
            Subset(
                cases=size,
                kept=float(np.mean(kept)),
                off=float(np.sqrt(np.mean((means - whole) ** 2))),
                wider=math.sqrt(scores.shape[1] / size),
            )
        )
    return results


def evenly(order: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one case from each of `size` stretches of an order, of equal length or, chosen by chance, longer by one."""
    short, extra = divmod(len(order), size)
    lengths = short + (rng.permutation(size) < extra)
    starts = np.cumsum(lengths) - lengths
    return np.asarray(order[starts + np.floor(rng.random(size) * lengths).astype(np.int64)], dtype=np.int64)


def _mean(scores: Floats, weights: Floats) -> Floats:
    return np.asarray(scores @ weights / weights.sum(), dtype=np.float64)


def closest(
    scores: Floats,
    better: NDArray[np.bool_],
    size: int,
    weights: Floats | None = None,
    *,
    draws: int = 200,
    seed: int = 0,
) -> list[int]:
    """Return the draw with means closest to those over all cases; draws that keep the order of the arms come first."""
    rng = np.random.default_rng(seed)
    order = np.argsort(scores.mean(axis=0), kind="stable")
    winners, losers = np.nonzero(better)
    w = np.ones(scores.shape[1]) if weights is None else weights
    whole = _mean(scores, w)
    best: tuple[bool, float, list[int]] | None = None
    for _ in range(draws):
        chosen = evenly(order, size, rng)
        means = _mean(scores[:, chosen], w[chosen])
        mixed = bool(np.any(means[winners] <= means[losers]))
        candidate = (mixed, float(np.max(np.abs(means - whole))), sorted(int(case) for case in chosen))
        best = candidate if best is None or candidate < best else best
    assert best is not None
    return best[2]
