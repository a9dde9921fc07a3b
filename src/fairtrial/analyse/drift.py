"""Does an arm drift over tagged runs? Its differences to the first runs on a control chart, on cases common to all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from fairtrial.analyse.case_table import Floats, Ints
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, read_scores
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.drift import RATE, REFERENCE, RUNS, DriftStep, control_chart
from fairtrial.stats.units import Measured

_FEWEST = REFERENCE + 1


class DriftPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run after the reference; numbers are 0–1."""

    run: str
    difference: Measured
    smoothed: Measured
    limit: Measured
    alarm: bool
    cases: int


class ArmDrift(msgspec.Struct, frozen=True, kw_only=True):
    """One arm over time."""

    arm: str
    first: str
    reference: list[str]  # the first runs, which later ones are compared with
    points: list[DriftPoint]

    @property
    def alarm(self) -> DriftPoint | None:
        """The first run that is out of the limits."""
        return next((point for point in self.points if point.alarm), None)


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm over time, and how often a chart has an alarm although nothing changed."""

    runs: list[str]
    arms: list[ArmDrift]
    false_alarms: float = RATE  # the share of series with an alarm
    within_runs: int = RUNS


def drift(sources: Sequence[RunSource]) -> Drift:
    """Compare every later source with the first ones, arm by arm."""
    if len(sources) < _FEWEST:
        raise FairtrialError(
            f"drift is seen from {_FEWEST} runs on, as the first {REFERENCE} show how much runs vary, and there are "
            f"{len(sources)}: give more runs a name with `fairtrial tag RUN NAME`, or name runs here"
        )
    scores = read_scores(sources)
    arms = list(_arms(scores, sources))
    if not arms:
        raise FairtrialError(
            f"no arm of the first run is in {_FEWEST} runs, on cases that all of them have: there is nothing to compare"
        )
    return Drift(runs=[source.label for source in sources], arms=arms)


def _arms(scores: ScoreTable, sources: Sequence[RunSource]) -> Iterator[ArmDrift]:
    for first in (one for one in scores.arms if one.source is sources[0]):
        runs = [
            one
            for source in sources
            for one in scores.arms
            if one.source is source and one.arm.name == first.arm.name and len(scores.common(one, first).keys)
        ]
        if len(runs) < _FEWEST:
            continue
        table = np.stack([one.means(SCORE) for one in runs])
        keys = np.flatnonzero(~np.isnan(table).any(axis=0) & (scores.weights > 0))
        if not len(keys):
            continue
        weights = scores.weights[keys]
        chart = control_chart(table[:, keys], weights, _within(runs, keys, weights / weights.sum()))
        yield ArmDrift(
            arm=first.arm.name,
            first=first.source.label,
            reference=[one.source.label for one in runs[:REFERENCE]],
            points=[_point(one, len(keys), step) for one, step in zip(runs[REFERENCE:], chart, strict=True)],
        )


def _point(entry: ArmScores, cases: int, point: DriftStep) -> DriftPoint:
    return DriftPoint(
        run=entry.source.label,
        difference=point.difference,
        smoothed=point.smoothed,
        limit=point.limit,
        alarm=point.alarm,
        cases=cases,
    )


def _within(runs: Sequence[ArmScores], keys: Ints, share: Floats) -> list[float] | None:
    """Return the variance of each run's mean that repeats show, pooled over the runs; None if no case has two."""
    squares, freedom = 0.0, 0
    for one in runs:
        column = one.values[SCORE]
        counts, sums = column.counts[keys], column.sums[keys]
        several = counts > 1
        if np.any(several):
            rests = np.maximum(0.0, one.spread.squares[keys] - sums**2 / np.maximum(counts, 1))
            squares, freedom = squares + float(rests[several].sum()), freedom + int((counts[several] - 1).sum())
    if not freedom:
        return None
    return [float(squares / freedom * np.sum(share**2 / one.values[SCORE].counts[keys])) for one in runs]
