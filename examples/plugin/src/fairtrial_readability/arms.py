"""Reading ease by arm, for the command and the page."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from statistics import fmean
from typing import NamedTuple

from fairtrial.plugins import Run, TrialRecord
from fairtrial_readability.ease import Reading, read


class ArmReading(NamedTuple):
    """How easy the answers of one arm are to read."""

    arm: str
    answers: int
    ease: float
    words_per_sentence: float


def by_arm(run: Run) -> list[ArmReading]:
    """Return the arms of a run, the easiest first; answers without words do not count."""
    found: dict[str, list[Reading]] = {}
    for trial, reading in _answers(run):
        found.setdefault(trial.arm, []).append(reading)
    arms = [
        ArmReading(arm, len(all_), fmean(one.ease for one in all_), fmean(one.words / one.sentences for one in all_))
        for arm, all_ in found.items()
    ]
    return sorted(arms, key=lambda one: -one.ease)


def hardest_answers(run: Run, count: int) -> list[tuple[TrialRecord, Reading]]:
    """Return the answers that are hardest to read."""
    return nsmallest(count, _answers(run), key=lambda pair: pair[1].ease)


def _answers(run: Run) -> Iterator[tuple[TrialRecord, Reading]]:
    for trial in run.trials():
        if trial.answer and (reading := read(trial.answer)).words:
            yield trial, reading
