"""A run's progress by arm: plain counters that can be read at any time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairtrial.core.answer import Failure, Outcome, failure_words
from fairtrial.core.money import Cost
from fairtrial.core.place import Place
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial
from fairtrial.store.totals import ArmTotals
from fairtrial.store.waiting import Waiting
from fairtrial.text.printable import counted

_NORMAL_95 = 1.96
_STILL = 30.0  # seconds without an answer that are worth saying
_NAMED = 3  # targets at most


class ArmProgress:
    """The counters of one arm. A trial is counted only once it is durable."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.scored = self.failed = self.unscored = 0
        self.sum = 0.0
        self.squares: float | None = 0.0  # the sum of the squared scores; None if earlier sessions have scores too
        self.cost = Cost()
        self.left: int | None = None  # the look at which it left a race

    @property
    def done(self) -> int:
        """The number of trials that have ended, with any result."""
        return self.scored + self.failed + self.unscored

    @property
    def left_words(self) -> str:
        """When it left a race; empty if it did not."""
        return "" if self.left is None else f"left at look {self.left}"

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
        self.failures: dict[str, int] = {}  # trials without a score, by the kind of failure
        self.held: Callable[[], list[str]] = list  # which limits hold the run back at the moment, in words
        self.before = 0  # trials finished by earlier sessions
        self.patient = False  # answers come in batches, so that hours without one are nothing to remark on
        self.note = ""  # why the run is slower than requested
        self.trying = ""  # the judge that is tried before anything is asked
        self._awaited: dict[Place, str] = {}  # the trials under way: the target that is asked, or nothing
        self.stopping = False  # a person has interrupted it
        self.growing = False  # cases are still being read, so the totals grow
        self.store = Waiting()  # how the session waits for its store

    def plan(self, totals: Iterable[int], *, growing: bool) -> None:
        """Set the number of trials of each arm."""
        self.growing = growing
        for arm, total in zip(self.arms, totals, strict=True):
            arm.total = total

    def restore(self, stored: Mapping[int, ArmTotals], mode: str, reasons: Iterable[tuple[str, str, int]] = ()) -> None:
        """Start from what earlier sessions did, and why (kind, message, count) trials have no score.

        Trials that will be retried do not count as done.
        """
        for position, totals in stored.items():
            arm = self.arms[position]
            arm.scored, arm.sum, arm.cost = totals.scored, totals.value_sum, totals.cost
            arm.squares = None if totals.scored else 0.0
            if mode == "resume":
                arm.failed, arm.unscored = totals.failed, totals.unscored
            elif mode == "rescore":
                arm.total = totals.stored - totals.failed
        for kind, _, count in reasons if mode == "resume" else ():
            self._count(kind, count)
        self.before = self.done

    def leave(self, looks: Mapping[int, int]) -> None:
        """Note at which look arms left a race, by their positions: nothing more is asked of them."""
        for position, look in looks.items():
            arm = self.arms[position]
            if arm.left is None:
                arm.left, arm.total = look, arm.done

    def answered(self, trial: Trial, outcome: Outcome) -> None:
        """Count an answer or failure that is durable."""
        arm = self.arms[trial.arm.position]
        arm.cost += outcome.cost
        if trial.place in self._awaited:
            self._awaited[trial.place] = ""
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

    def _count(self, kind: str, trials: int = 1) -> None:
        self.failures[kind] = self.failures.get(kind, 0) + trials
        self.latest = time.monotonic()

    def reasons(self) -> list[str]:
        """Return why trials have no score, in words, with how many; pages ask from other threads."""
        return [f"{count:,} {failure_words(kind)}" for kind, count in list(self.failures.items())]

    def held_back(self) -> list[str]:
        """Return what holds the run back at the moment, in words."""
        held = [*self.held(), *([self.note] if self.note else [])]
        if why := self.store.why():
            return [*held, f"waiting: {why}"]  # and so no answer can be stored, and none counts
        still = time.monotonic() - max(self.latest, self.store.free_since)
        return [*held, self._missing(still)] if still >= _STILL and not self.patient else held

    @contextmanager
    def under_way(self, trial: Trial) -> Iterator[None]:
        """Know what a trial waits for while the block runs: first its target, and once it has answered, its score."""
        self._awaited[trial.place] = trial.arm.target.id if trial.stored is None else ""
        try:
            yield
        finally:
            del self._awaited[trial.place]

    def _missing(self, seconds: float) -> str:
        """Return what has not come for this many seconds, and from whom."""
        awaited = list(self._awaited.values())
        asked = list(dict.fromkeys(filter(None, awaited)))
        if self.trying:
            return f"no answer for {seconds:.0f} s from the judge {self.trying}, which is tried first"
        if asked or not awaited:
            names = f" from {', '.join(asked[:_NAMED])}{' …' if len(asked) > _NAMED else ''}" if asked else ""
            return f"no answer for {seconds:.0f} s{names}"
        return f"no score for {seconds:.0f} s, of {counted(len(awaited), 'answer')}"

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
        """The estimated seconds until the run ends at the current rate; None while that is unknown."""
        known = self.rate > 0 and not self.growing and not self.patient
        return (self.total - self.done) / self.rate if known else None
