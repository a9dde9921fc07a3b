"""A control chart over time: exponentially weighted means of differences to the first run, with limits.

All differences share the noise of the first run, so they are not independent; the limits allow for it. They are drawn
so that a series in which nothing changes has an alarm within 100 runs with a stated probability, found by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import msgspec
import numpy as np

from fairtrial.stats.units import Measured

WEIGHT = 0.3  # of the newest difference
RUNS, RATE = 100, 0.05  # a false alarm within this many runs, in this share of series
_CHARTS, _SEED = 20_000, 1


class DriftStep(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its difference to the first, the weighted mean up to it, and how far that may be from 0 by chance."""

    difference: Measured
    smoothed: Measured
    limit: Measured
    alarm: bool


def control_chart(differences: Sequence[float], variances: Sequence[float], first: float) -> list[DriftStep]:
    """Return a point for every difference; `variances` are those of the runs' means by noise, `first` the first's."""
    points: list[DriftStep] = []
    smoothed = own = 0.0
    reach = sigmas()
    for number, (difference, variance) in enumerate(zip(differences, variances, strict=True), start=1):
        smoothed = WEIGHT * difference + (1 - WEIGHT) * smoothed
        own = WEIGHT**2 * variance + (1 - WEIGHT) ** 2 * own
        shared = (1 - (1 - WEIGHT) ** number) ** 2 * first
        limit = reach * math.sqrt(own + shared)
        alarm = abs(smoothed) > limit + 1e-12
        points.append(DriftStep(difference=difference, smoothed=smoothed, limit=limit, alarm=alarm))
    return points


@cache
def sigmas(runs: int = RUNS, rate: float = RATE) -> float:
    """Return the limit in standard deviations at which this many series without any change have an alarm."""
    rng = np.random.default_rng(_SEED)
    first = rng.standard_normal(_CHARTS)
    smoothed, furthest, own = np.zeros(_CHARTS), np.zeros(_CHARTS), 0.0
    for number in range(1, runs + 1):
        smoothed = WEIGHT * (rng.standard_normal(_CHARTS) - first) + (1 - WEIGHT) * smoothed
        own = WEIGHT**2 + (1 - WEIGHT) ** 2 * own
        shared = (1 - (1 - WEIGHT) ** number) ** 2
        furthest = np.maximum(furthest, np.abs(smoothed) / math.sqrt(own + shared))
    return float(np.quantile(furthest, 1 - rate))
