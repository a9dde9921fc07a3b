"""What planned looks, races and bets do on made-up scores, by the code that stops real runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial.core.settings import StopSpec
from fairtrial.engine.planned_looks import PlannedLooks
from fairtrial.stats import Bets
from fairtrial.stats.looks import Look, Looked
from fairtrial.stats.paired import mean_difference

Floats = NDArray[np.float64]
ALPHA = 0.05
FEWEST = 20  # cases before bets may stop a run


class Played(NamedTuple):
    """What came of a plan."""

    calls: int
    looks: int  # that were taken
    left: dict[int, int]  # the look at which arms left


def played(scores: Floats, stop: StopSpec) -> Played:
    """Ask as the engine does, with scores as arms × cases in the order in which they are asked."""
    arms: list[Any] = [SimpleNamespace(position=n, repeats_of=lambda case: 1) for n in range(len(scores))]
    watch = PlannedLooks(stop, arms, range(scores.shape[1]))
    calls = looks = 0
    for case in range(scores.shape[1]):
        watch.expect(SimpleNamespace(position=case))  # type: ignore[arg-type]
        for arm in arms:
            if arm.position not in watch.left:
                calls += 1
                watch.ended(case, arm.position, float(scores[arm.position, case]))
        if watch.due:
            looks += 1
            watch.look()
            watch.due = False
        if watch.reason is not None:
            break
    return Played(calls, looks, dict(watch.left))


def looked(scores: Floats, stop: StopSpec, done: Played) -> Looked:
    """Return the estimate of the difference between two arms at the look at which a plan ended."""
    cases = done.calls // 2
    look = Look(number=done.looks, planned=stop.looks, shape=stop.shape)
    return Looked(mean_difference(scores[0, :cases], scores[1, :cases]), look)


def bet(differences: Floats) -> tuple[int, bool]:
    """Return after how many cases a run that is watched all the time stops, and whether it has a verdict."""
    bets = Bets()
    for number, value in enumerate(differences, 1):
        bets.add(float(value))
        if number >= FEWEST and min(bets.p_above(), bets.p_below()) < ALPHA:
            return number, True
    return len(differences), False
