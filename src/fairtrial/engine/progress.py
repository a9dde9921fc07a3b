"""A run's progress by arm: plain counters that can be read at any time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from fairtrial.core.answer import Failure, Outcome
from fairtrial.core.money import Cost
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial
from fairtrial.store.totals import ArmTotals

_NORMAL_95 = 1.96


class ArmProgress:
    """The counters of one arm. A trial is counted only once it is durable."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.scored = self.failed = self.unscored = 0
        self.sum = 0.0
        self.squares: float | None = 0.0  # the sum of the squared scores; None if earlier sessions have scores too
        self.cost = Cost()

    @property
    def done(self) -> int:
        """The number of trials that have ended, with any result."""
        return self.scored + self.failed + self.unscored

    @property
    def mean(self) -> float | None:
        """The running mean score, unweighted, 0–1; the table at the end has the final value."""
        return self.sum / self.scored if self.scored else None

    def interval(self, repeats: int = 1) -> tuple[float, float] | None:
        """A rough 95 % interval of the running mean, 0–1; None without scores. The table at the end has the final one.

        It is Wilson's, with as many cases as would vary like this if each were right or wrong.
        """
        if not self.scored:
            return None
        mean, cases = self.sum / self.scored, max(1.0, self.scored / repeats)
        if self.squares is not None and self.scored > 1:
            variance = max(0.0, self.squares / self.scored - mean**2)
            if variance > 0:
                cases *= max(1.0, mean * (1 - mean) / variance)
        square = _NORMAL_95**2 / cases
        middle = (mean + square / 2) / (1 + square)
        reach = math.sqrt(mean * (1 - mean) * square + square**2 / 4) / (1 + square)
        return max(0.0, middle - reach), min(1.0, middle + reach)


class Progress:
    """The counters of a run."""

    def __init__(self, names: Sequence[str], totals: Sequence[int]) -> None:
        self.arms = [ArmProgress(name, total) for name, total in zip(names, totals, strict=True)]
        self.started = self.latest = time.monotonic()  # `latest` is when a trial last ended
        self.title = ""  # the suite and the number of the run
        self.failures: dict[str, int] = {}  # of this session, by the kind of failure
        self.held: Callable[[], list[str]] = list  # what holds the run back at the moment, in words
        self.before = 0  # trials finished by earlier sessions
        self.note = ""  # why the run is slower than requested
        self.growing = False  # cases are still being read, so the totals grow
        self.locked = False  # another program has locked the store, and all writes wait

    def lock(self, locked: bool) -> None:
        """Note whether another program has locked the store."""
        self.locked = locked

    def plan(self, totals: Iterable[int], *, growing: bool) -> None:
        """Set the number of trials of each arm."""
        self.growing = growing
        for arm, total in zip(self.arms, totals, strict=True):
            arm.total = total

    def restore(self, stored: Mapping[int, ArmTotals], mode: str) -> None:
        """Start from what earlier sessions did; trials that will be retried do not count as done."""
        for position, totals in stored.items():
            arm = self.arms[position]
            arm.scored, arm.sum, arm.cost = totals.scored, totals.value_sum, totals.cost
            arm.squares = None if totals.scored else 0.0
            if mode == "resume":
                arm.failed, arm.unscored = totals.failed, totals.unscored
            elif mode == "rescore":
                arm.total = totals.stored - totals.failed
        self.before = self.done

    def answered(self, trial: Trial, outcome: Outcome) -> None:
        """Count an answer or failure that is durable."""
        arm = self.arms[trial.arm.position]
        arm.cost += outcome.cost
        if isinstance(outcome.result, Failure):
            arm.failed += 1
            self._count(outcome.result.kind)

    def scored(self, trial: Trial, result: Score | Unscored) -> None:
        """Count a score that is durable."""
        arm = self.arms[trial.arm.position]
        if isinstance(result, Score):
            arm.scored += 1
            arm.sum += result.value
            if arm.squares is not None:
                arm.squares += result.value * result.value
            self.latest = time.monotonic()
        else:
            arm.unscored += 1
            self._count(result.kind)

    def _count(self, kind: str) -> None:
        """Count a trial that ended without a score."""
        self.failures[kind] = self.failures.get(kind, 0) + 1
        self.latest = time.monotonic()

    @property
    def done(self) -> int:
        """The number of trials that have ended."""
        return sum(arm.done for arm in self.arms)

    @property
    def total(self) -> int:
        """The number of trials in the run."""
        return sum(arm.total for arm in self.arms)

    @property
    def rate(self) -> float:
        """Trials per second in this session."""
        return (self.done - self.before) / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds until the run ends at the current rate; None while that cannot be told."""
        return (self.total - self.done) / self.rate if self.rate > 0 and not self.growing else None
