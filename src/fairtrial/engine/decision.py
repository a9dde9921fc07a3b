"""Stop a run as soon as its question is answered, without inflating errors by checking often.

Cases are asked in a random order, fixed by the run's id, and only the completed start of that order is evaluated:
otherwise quick cases would count first. The evaluation uses bets on the differences, which are valid at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from fairtrial.core.experiment import Arm, Case
from fairtrial.core.settings import FEWEST_CASES, StopSpec

if TYPE_CHECKING:
    from fairtrial.stats.betting import Bets  # numpy: only a run that may stop early needs it


class Decision:
    """Watches every pair of arms; `reason` says why the run may stop."""

    def __init__(self, stop: StopSpec, arms: Sequence[Arm], order: Sequence[int]) -> None:
        from fairtrial.stats.betting import Bets  # imports numpy, which is needed only for early stopping

        self.reason: str | None = None
        self.complete = 0  # finished cases at the start of the order
        self._stop, self._arms, self._order = stop, arms, order
        self._left: dict[int, int] = {}  # trials of a case that are still missing
        self._values: dict[int, dict[int, list[float]]] = {}
        positions = list(combinations([arm.position for arm in arms], 2))
        self._alpha = 0.05 / len(positions)
        points = () if stop.margin is None else (stop.margin, -stop.margin)
        self._pairs = {pair: Bets(alpha=self._alpha, points=points) for pair in positions}

    def expect(self, case: Case) -> None:
        """Register a case whose trials are about to start."""
        self._left.setdefault(case.position, sum(arm.repeats_of(case) for arm in self._arms))

    def ended(self, case: int, arm: int, score: float | None) -> None:
        """Register that a trial has ended, with or without a score."""
        if score is not None:
            self._values.setdefault(case, {}).setdefault(arm, []).append(score)
        self._left[case] -= 1
        while self.complete < len(self._order) and self._left.get(self._order[self.complete]) == 0:
            self._update_bets(self._values.pop(self._order[self.complete], {}))
            self.complete += 1

    def _update_bets(self, values: dict[int, list[float]]) -> None:
        if self.reason is not None:
            return
        means = {arm: sum(scores) / len(scores) for arm, scores in values.items()}
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
