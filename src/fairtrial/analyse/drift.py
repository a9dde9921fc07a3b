"""Does an arm drift over tagged runs? Its paired differences to the first run on a control chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, read_scores
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.drift import RATE, RUNS, DriftStep, control_chart
from fairtrial.stats.units import Measured

_FEWEST = 3  # runs: with two, `compare` says more


class DriftPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run after the first; numbers are 0–1."""

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
    """Compare every later source with the first, arm by arm."""
    if len(sources) < _FEWEST:
        raise FairtrialError(
            f"drift is seen over at least {_FEWEST} runs, and there are {len(sources)}: give more runs a name with "
            "`fairtrial tag RUN NAME`, or name runs here"
        )
    scores = read_scores(sources)
    arms = list(_arms(scores, sources))
    if not arms:
        raise FairtrialError("no arm of the first run is in the later ones: there is nothing to compare")
    return Drift(runs=[source.label for source in sources], arms=arms)


def _arms(scores: ScoreTable, sources: Sequence[RunSource]) -> Iterator[ArmDrift]:
    for first in (one for one in scores.arms if one.source is sources[0]):
        later = [
            one
            for source in sources[1:]
            for one in scores.arms
            if one.source is source and one.arm.name == first.arm.name and len(scores.common(one, first).keys)
        ]
        if not later:
            continue
        noise = [_noise(scores, one) for one in (first, *later)]
        if any(value is None for value in noise):  # one answer to a case: successive runs show how much scores vary
            noise = [_successive_noise(scores, [first, *later])] * len(noise)
        known = [value or 0.0 for value in noise]
        common = [scores.common(one, first) for one in later]
        differences = [float(np.average(both.d, weights=both.weights)) for both in common]
        chart = control_chart(differences, known[1:], known[0])
        points = [_point(one, len(both.keys), point) for one, both, point in zip(later, common, chart, strict=True)]
        yield ArmDrift(arm=first.arm.name, first=first.source.label, points=points)


def _point(entry: ArmScores, cases: int, point: DriftStep) -> DriftPoint:
    return DriftPoint(
        run=entry.source.label,
        difference=point.difference,
        smoothed=point.smoothed,
        limit=point.limit,
        alarm=point.alarm,
        cases=cases,
    )


def _noise(scores: ScoreTable, entry: ArmScores) -> float | None:
    """Return the variance of an arm's mean that comes from answers varying by chance; None if no case has two."""
    column = entry.values[SCORE]
    rows = np.flatnonzero((column.counts > 0) & (scores.weights > 0))
    counts, sums = column.counts[rows], column.sums[rows]
    several = counts > 1
    if not np.any(several):
        return None
    squares = np.maximum(0.0, entry.spread.squares[rows] - sums**2 / counts)
    variance = float(squares[several].sum() / (counts[several] - 1).sum())
    weights = scores.weights[rows] / scores.weights[rows].sum()
    return float(variance * np.sum(weights**2 / counts))


def _successive_noise(scores: ScoreTable, entries: Sequence[ArmScores]) -> float:
    """Return the same from the differences of successive runs, half of whose variance is that of one run."""
    found = []
    for one, other in zip(entries[1:], entries, strict=False):
        common = scores.common(one, other)
        if len(common.keys) > 1:
            weights = common.weights / common.weights.sum()
            rest = common.d - float(weights @ common.d)
            n = len(rest)
            found.append(float(np.sum(weights**2 * rest**2)) * n / (n - 1) / 2)
    return float(np.mean(found)) if found else 0.0
