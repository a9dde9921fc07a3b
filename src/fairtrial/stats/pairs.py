"""Pairs judged in both orders: who wins, how often the order decides, and which place is preferred."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.one_arm import Aggregate, aggregate


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What verdicts in both orders say; shares are 0–1, each with its interval."""

    pairs: int
    wins: int
    ties: int
    losses: int
    win_rate: Aggregate  # ties count half
    flip_rate: Aggregate  # how often the two orders disagree
    first_share: Aggregate  # how much goes to whatever stands first; ½ is no preference


def both_orders(forward: ArrayLike, backward: ArrayLike, clusters: ArrayLike | None = None) -> Orders:
    """Verdicts on the same pairs in both orders, each the worth of `one`: 1, ½ or 0. Disagreement is a tie.

    Shares are means over clusters (the cases that pairs belong to): a cluster's pairs are alike, and count as one.
    """
    there, back = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64)
    worth = np.where(there == back, there, 0.5)
    groups = np.arange(len(worth)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]

    def share(values: NDArray[np.float64]) -> Aggregate:
        return aggregate(np.bincount(groups, weights=values) / np.bincount(groups))

    return Orders(
        pairs=len(worth),
        wins=int(np.sum(worth == 1)),
        ties=int(np.sum(worth == 0.5)),
        losses=int(np.sum(worth == 0)),
        win_rate=share(worth),
        flip_rate=share((there != back).astype(np.float64)),
        first_share=share((there + 1 - back) / 2),
    )
