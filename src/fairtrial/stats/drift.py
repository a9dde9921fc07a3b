"""A control chart over time: exponentially weighted means of differences to the first runs, with limits.

The first runs are the reference, and show how much a run varies when nothing changes: by what repeats within a run
show, or by what differs from one run to the next, whichever is larger, as a model that answers the same whenever it is
asked again in a run may answer differently in another. All differences share the noise of the reference; the limits
allow for it. They are drawn so that a series in which nothing changes has an alarm within 100 runs with a stated
probability, found by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.units import Measured

Floats = NDArray[np.float64]
WEIGHT = 0.3  # of the newest difference
REFERENCE = 8  # runs that later ones are compared with
RUNS, RATE = 100, 0.05  # a false alarm within this many runs, in this share of series
_CHARTS, _SEED = 20_000, 1


class DriftStep(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its difference to the reference, the weighted mean up to it, and how far that may be off by chance."""

    difference: Measured
    smoothed: Measured
    limit: Measured
    alarm: bool


def control_chart(scores: Floats, weights: Floats, within: Sequence[float] | None = None) -> list[DriftStep]:
    """Return a point for every run after the reference; `scores` are runs × cases, 0–1, the weights are of cases.

    `within` is the variance of each run's mean as repeats within runs show it, if any case has several.
    """
    share = weights / weights.sum()
    means = scores @ share
    between = _between(scores, share)
    points: list[DriftStep] = []
    smoothed = 0.0
    for number, run in enumerate(range(REFERENCE, len(means)), start=1):
        variances = np.full(run + 1, between[run - 2])  # of the runs before: a step would hide behind its own size
        if within is not None:
            variances = np.maximum(variances, within[: run + 1])
        difference = float(means[run] - means[:REFERENCE].mean())
        smoothed = WEIGHT * difference + (1 - WEIGHT) * smoothed
        counts = WEIGHT * (1 - WEIGHT) ** np.arange(number)[::-1]
        own = float(np.sum(counts**2 * variances[REFERENCE:]))
        shared = (1 - (1 - WEIGHT) ** number) ** 2 * float(variances[:REFERENCE].mean()) / REFERENCE
        jump = float(np.sum(counts**3) / np.sum(counts**2)) * _skew(scores[:run], share)
        limit = sigmas() * math.sqrt(own + shared) + (sigmas() ** 2 - 1) / 6 * jump
        alarm = abs(smoothed) > limit + 1e-12
        points.append(DriftStep(difference=difference, smoothed=smoothed, limit=limit, alarm=alarm))
    return points


def _between(scores: Floats, share: Floats) -> Floats:
    """Return the variance of a run's mean, as the successive runs up to each one show it: half of a difference's.

    It is the larger of what single cases show and what the means show. Among cases, one change over the whole scale
    that has not been seen is counted: where nearly all answers are right, none may have been wrong by chance.
    """
    changes = np.diff(scores, axis=0)
    overall = changes @ share
    count = len(share)
    by_case = ((changes - overall[:, None]) ** 2) @ share**2 * count / max(1, count - 1)
    so_far = np.arange(1, len(changes) + 1)
    unseen = float(np.mean(share**2))
    found = np.maximum((np.cumsum(by_case) + unseen) / so_far, np.cumsum(overall**2) / so_far)
    return np.asarray(found / 2, dtype=np.float64)


def _skew(scores: Floats, share: Floats) -> float:
    """Return the third cumulant of a run's mean per unit of its variance, with one change not yet seen."""
    rests = scores - scores.mean(axis=0)
    squares, cubes = (rests**2).sum() + 1, np.abs((rests**3).sum()) + 1
    return float(cubes / squares * np.sum(share**3) / np.sum(share**2))


@cache
def sigmas(runs: int = RUNS, rate: float = RATE) -> float:
    """Return the limit in standard deviations at which this many series without any change have an alarm."""
    rng = np.random.default_rng(_SEED)
    reference = rng.standard_normal((REFERENCE, _CHARTS)).mean(axis=0)
    smoothed, furthest, own = np.zeros(_CHARTS), np.zeros(_CHARTS), 0.0
    for number in range(1, runs - REFERENCE + 1):
        smoothed = WEIGHT * (rng.standard_normal(_CHARTS) - reference) + (1 - WEIGHT) * smoothed
        own = WEIGHT**2 + (1 - WEIGHT) ** 2 * own
        shared = (1 - (1 - WEIGHT) ** number) ** 2 / REFERENCE
        furthest = np.maximum(furthest, np.abs(smoothed) / math.sqrt(own + shared))
    return float(np.quantile(furthest, 1 - rate))
