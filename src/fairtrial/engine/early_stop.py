"""What a run that may stop early keeps of its trials: which cases are complete, in the order in which they are asked.

Cases are asked in a random order, fixed by the run's id, and only the completed start of that order is evaluated:
otherwise quick cases would count first.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.core.experiment import Arm, Case


class EarlyStop:
    """Follows the complete cases; `reason` says why the run may stop."""

    def __init__(self, arms: Sequence[Arm], order: Sequence[int]) -> None:
        self.reason: str | None = None
        self.complete = 0  # finished cases at the start of the order
        self.due = False  # whether `look` has to be called before anything else is asked
        self.left: dict[int, int] = {}  # the look at which arms left, by their positions
        self._arms, self._order = arms, order
        self._missing: dict[int, int] = {}  # trials of a case that are still missing
        self._values: dict[int, dict[int, list[float]]] = {}

    def limit(self, concurrency: int) -> int:
        """Return how many cases of the order may be begun, so that no answer is asked for that is not needed."""
        return self.complete + concurrency + 1

    def expect(self, case: Case) -> None:
        """Register a case whose trials are about to start."""
        asked = (arm.repeats_of(case) for arm in self._arms if arm.position not in self.left)
        self._missing.setdefault(case.position, sum(asked))

    def ended(self, case: int, arm: int, score: float | None) -> None:
        """Register that a trial has ended, with or without a score."""
        if score is not None:
            self._values.setdefault(case, {}).setdefault(arm, []).append(score)
        self._missing[case] -= 1
        while self.complete < len(self._order) and self._missing.get(self._order[self.complete]) == 0:
            scores = self._values.pop(self._order[self.complete], {})
            self.complete += 1
            self._completed({position: sum(values) / len(values) for position, values in scores.items()})

    def look(self) -> None:
        """Look at the complete cases; this may take a while, so it is done in a thread."""

    def _completed(self, means: dict[int, float]) -> None:
        """Take the means of the arms on the next case; an arm without a score is missing."""
        raise NotImplementedError
