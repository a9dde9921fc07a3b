"""Ending a run as soon as its question is answered, at whatever moment that is, without being fooled by looking often.

Cases are asked in a random order, fixed by the run's id, and only the completed beginning of that order is looked at:
otherwise quick cases would speak first. What is looked at is an anytime-valid sequence of the differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from fairtrial.core.stopping import FEWEST
from fairtrial.core.suite import Arm, Case, StopSpec

if TYPE_CHECKING:
    from fairtrial.stats.sequence import RunningSequence


class Decision:
    """Watches every pair of arms; `reason` says why the run may end."""

    def __init__(self, stop: StopSpec, arms: Sequence[Arm], order: Sequence[int]) -> None:
        from fairtrial.stats.sequence import RunningSequence  # numpy: only where somebody wants to stop early

        self.reason: str | None = None
        self._stop, self._arms, self._order = stop, arms, order
        self._left: dict[int, int] = {}  # trials that a case still waits for
        self._values: dict[int, dict[int, list[float]]] = {}
        self._next = 0
        self._pairs = {
            (a, b): RunningSequence(best_at=stop.best_at) for a, b in combinations([arm.position for arm in arms], 2)
        }

    def expect(self, case: Case) -> None:
        """A case whose trials are about to be made."""
        self._left.setdefault(case.position, sum(arm.repeats_of(case) for arm in self._arms))

    def ended(self, case: int, arm: int, score: float | None) -> None:
        """One trial has ended, with a score or without."""
        if score is not None:
            self._values.setdefault(case, {}).setdefault(arm, []).append(score)
        self._left[case] -= 1
        while self.reason is None and self._next < len(self._order) and self._left.get(self._order[self._next]) == 0:
            self._complete(self._values.pop(self._order[self._next], {}))
            self._next += 1

    def _complete(self, values: dict[int, list[float]]) -> None:
        means = {arm: sum(scores) / len(scores) for arm, scores in values.items()}
        for (a, b), sequence in self._pairs.items():
            if a in means and b in means:  # a case without a score of both says nothing about their difference
                sequence.add(means[a] - means[b])
        if all(sequence.count >= FEWEST and self._settled(sequence) for sequence in self._pairs.values()):
            done = min(sequence.count for sequence in self._pairs.values())
            self.reason = f"{self._stop.when} after {done} cases"

    def _settled(self, sequence: RunningSequence) -> bool:
        found = sequence.now(among=len(self._pairs))
        assert found.interval is not None
        low, high = found.interval
        margin = self._stop.margin
        if self._stop.when == "equivalent":
            assert margin is not None
            return (low > -margin and high < margin) or low > margin or high < -margin
        same = margin is not None and low > -margin and high < margin
        return low > 0 or high < 0 or same
