"""Pairs judged in both orders: who wins, how often the order decides, and which place is preferred."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

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
    """Verdicts on the same pairs in both orders, each the worth of `one`: 1, ½ or 0. Disagreement is a tie."""
    there, back = np.asarray(forward, dtype=np.float64), np.asarray(backward, dtype=np.float64)
    worth = np.where(there == back, there, 0.5)
    return Orders(
        pairs=len(worth),
        wins=int(np.sum(worth == 1)),
        ties=int(np.sum(worth == 0.5)),
        losses=int(np.sum(worth == 0)),
        win_rate=aggregate(worth, clusters=clusters),
        flip_rate=aggregate(there != back, clusters=clusters),
        first_share=aggregate((there + 1 - back) / 2, clusters=clusters),
    )
