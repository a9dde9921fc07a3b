"""Stop a run as soon as its question is answered, without inflating errors by checking after every case.

The evaluation uses bets on the differences, which are valid at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from fairtrial.core.experiment import Arm
from fairtrial.core.settings import FEWEST_CASES, StopSpec
from fairtrial.engine.early_stop import EarlyStop

if TYPE_CHECKING:
    from fairtrial.stats.betting import Bets  # numpy: only a run that may stop early needs it


class Decision(EarlyStop):
    """Watches every pair of arms."""

    def __init__(self, stop: StopSpec, arms: Sequence[Arm], order: Sequence[int]) -> None:
        from fairtrial.stats.betting import Bets  # imports numpy, which is needed only for early stopping

        super().__init__(arms, order)
        self._stop = stop
        positions = list(combinations([arm.position for arm in arms], 2))
        self._alpha = 0.05 / len(positions)
        points = () if stop.margin is None else (stop.margin, -stop.margin)
        self._pairs = {pair: Bets(alpha=self._alpha, points=points) for pair in positions}

    def _completed(self, means: dict[int, float]) -> None:
        if self.reason is not None:
            return
        for (a, b), bets in self._pairs.items():
            if a in means and b in means:  # a case without scores for both says nothing about the difference
                bets.add(means[a] - means[b])
        if all(bets.count >= FEWEST_CASES and self._settled(bets) for bets in self._pairs.values()):
            done = min(bets.count for bets in self._pairs.values())
            self.reason = f"{self._stop.when} after {done} cases"

    def _settled(self, bets: Bets) -> bool:
        margin, alpha = self._stop.margin, self._alpha
        same = margin is not None and bets.p_above(-margin) < alpha and bets.p_below(margin) < alpha
        if self._stop.when == "equivalent":
            assert margin is not None
            return same or bets.p_above(margin) < alpha or bets.p_below(-margin) < alpha
        return same or bets.p_above() < alpha or bets.p_below() < alpha
