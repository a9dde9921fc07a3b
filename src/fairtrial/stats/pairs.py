"""Pairs judged in both orders: win rate, how often the order decides, and which position is preferred."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.one_arm import Aggregate, aggregate


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Results of verdicts in both orders; shares are 0–1, each with its interval."""

    pairs: int
    wins: int
    ties: int
    losses: int
    win_rate: Aggregate  # ties count half
    flip_rate: Aggregate  # how often the two orders disagree
    first_share: Aggregate  # the share that goes to the answer shown first; ½ is no preference


def both_orders(forward: ArrayLike, backward: ArrayLike, clusters: ArrayLike | None = None) -> Orders:
    """Summarise verdicts on the same pairs in both orders, each the result of `one`: 1, ½ or 0. Disagreement is a tie.

    Shares are means over clusters (the cases that pairs belong to): the pairs of a cluster are alike and count as one.
    """
    first, second = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64)
    results = np.where(first == second, first, 0.5)
    groups = np.arange(len(results)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]

    def share(values: NDArray[np.float64]) -> Aggregate:
        return aggregate(np.bincount(groups, weights=values) / np.bincount(groups))

    return Orders(
        pairs=len(results),
        wins=int(np.sum(results == 1)),
        ties=int(np.sum(results == 0.5)),
        losses=int(np.sum(results == 0)),
        win_rate=share(results),
        flip_rate=share((first != second).astype(np.float64)),
        first_share=share((first + 1 - second) / 2),
    )
