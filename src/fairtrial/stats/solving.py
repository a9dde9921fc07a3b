"""What solving takes: amounts per solved trial, and the time until a trial is solved.

An amount per solved trial (money, tokens) is a ratio of two sums: that of all trials, solved or not, over the number
that was solved. Cases, or clusters of cases, are what varies, so they are left out in turn and resampled. The
interval is on the scale of logarithms, and the hull of two: Student's t with the jackknife, which holds where few
trials are solved, and the studentised bootstrap, which holds where a few trials are very dear.

A trial that was not solved has no time to solve. It counts with the time that there was (`horizon`), in a mean that is
restricted to it; the mean of the solved ones alone would be the shorter the fewer are solved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import t_quantile
from fairtrial.stats.mean import ALPHA
from fairtrial.stats.one_arm import Aggregate, aggregate

Floats = NDArray[np.float64]
_RESAMPLES, _SEED = 999, 0
_WIDEST = math.log(1e6)  # an interval that is wider says nothing
_MOST_UNITS = 2000  # that are resampled; of more, the jackknife is as good
_MARKS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0)  # seconds
_MOST_MARKS = 4


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of sums with its interval; `ci95` is None where too little was solved to say how far off it can be."""

    value: float
    ci95: tuple[float, float] | None
    units: int


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """Which share of the trials was solved within this many seconds."""

    seconds: float
    share: float
    ci95: tuple[float, float] | None


class SolveTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How soon trials were solved; seconds."""

    mean: float  # restricted to the horizon, which is the time of those that were not solved
    ci95: tuple[float, float] | None
    horizon: float
    median: float | None  # the time within which half of all trials were solved; None if fewer were
    within: list[Within] = []


class _Sums(NamedTuple):
    """The numerator and denominator of a ratio, one of each for every unit."""

    amounts: Floats
    solved: Floats

    @property
    def log(self) -> float:
        return math.log(self.amounts.sum() / self.solved.sum())

    def without_each(self) -> Floats:
        """Return the logarithm of the ratio with each unit left out."""
        rest = (self.amounts.sum() - self.amounts, self.solved.sum() - self.solved)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(rest[0]) - np.log(rest[1]), dtype=np.float64)

    def resampled(self, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the logarithms of the ratios of resamples, and what each of their units adds to it."""
        amounts, solved = self.amounts[chosen], self.solved[chosen]
        means = amounts.mean(axis=1, keepdims=True), solved.mean(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.log(means[0]) - np.log(means[1]))[:, 0], amounts / means[0] - solved / means[1]


def per_solved(amounts: ArrayLike, solved: ArrayLike, clusters: ArrayLike | None = None) -> Ratio | None:
    """Return the amount per solved trial from sums by case; None if nothing was solved, or it took nothing."""
    sums = _by_unit(amounts, solved, clusters)
    if not (sums.solved.sum() > 0 and sums.amounts.sum() > 0):
        return None
    return Ratio(value=math.exp(sums.log), ci95=_interval([(1, sums)]), units=len(sums.solved))


def times_dearer(
    amounts: tuple[ArrayLike, ArrayLike], solved: tuple[ArrayLike, ArrayLike], clusters: ArrayLike | None = None
) -> Ratio | None:
    """Return how many times as much a solved trial takes with one arm as with another, on the cases of both."""
    one, other = (_by_unit(a, s, clusters) for a, s in zip(amounts, solved, strict=True))
    if min(one.solved.sum(), other.solved.sum(), one.amounts.sum(), other.amounts.sum()) <= 0:
        return None
    value = math.exp(one.log - other.log)
    return Ratio(value=value, ci95=_interval([(1, one), (-1, other)]), units=len(one.solved))


def _by_unit(amounts: ArrayLike, solved: ArrayLike, clusters: ArrayLike | None) -> _Sums:
    c, s = np.asarray(amounts, dtype=np.float64), np.asarray(solved, dtype=np.float64)
    if clusters is None:
        return _Sums(c, s)
    units = np.unique(np.asarray(clusters), return_inverse=True)[1]
    return _Sums(np.bincount(units, c).astype(np.float64), np.bincount(units, s).astype(np.float64))


def _interval(parts: list[tuple[int, _Sums]]) -> tuple[float, float] | None:
    """Return the interval of a ratio, or of a ratio of two (whose second part has the sign −1)."""
    n = len(parts[0][1].solved)
    if n < 2:
        return None
    away = sum(sign * sums.without_each() for sign, sums in parts)
    if not np.all(np.isfinite(away)):  # one unit alone has all that was solved
        return None
    log = sum(sign * sums.log for sign, sums in parts)
    std_err = math.sqrt((n - 1) / n * float(np.sum((away - np.mean(away)) ** 2)))
    half = t_quantile(1 - ALPHA / 2, n - 1) * std_err
    low, high = log - half, log + half
    if std_err > 0 and n <= _MOST_UNITS:
        below, above = _studentised(parts, log, n)
        low, high = min(low, below), max(high, above)
    return (math.exp(low), math.exp(high)) if high - low < _WIDEST else None


def _studentised(parts: list[tuple[int, _Sums]], log: float, n: int) -> tuple[float, float]:
    """Return the limits by how far off resamples are, in standard errors of their own."""
    rows = np.arange(n)[None, :]
    observed = sum(sign * sums.resampled(rows)[1] for sign, sums in parts)
    std_err = math.sqrt(float(np.sum(np.asarray(observed) ** 2)) / (n * (n - 1)))
    chosen = np.random.default_rng(_SEED).integers(0, n, (_RESAMPLES, n))
    drawn = [(sign, *sums.resampled(chosen)) for sign, sums in parts]
    logs, adds = sum(sign * one for sign, one, _ in drawn), sum(sign * each for sign, _, each in drawn)
    errors = np.sqrt(np.sum(np.asarray(adds) ** 2, axis=1) / (n * (n - 1)))
    usable = np.isfinite(np.asarray(logs)) & (errors > 0)  # in some, nothing is solved
    if not usable.any():
        return log, log
    t = (np.asarray(logs)[usable] - log) / errors[usable]
    low, high = np.quantile(t, [ALPHA / 2, 1 - ALPHA / 2])
    return log - float(high) * std_err, log - float(low) * std_err


def solve_times(
    seconds: ArrayLike, solved: ArrayLike, cases: ArrayLike, horizon: float, clusters: ArrayLike | None = None
) -> SolveTimes | None:
    """Return how soon trials were solved, from one entry per trial; `clusters` are those of the trials.

    Trials that failed are not among them: until when they would have been unsolved is not known.
    """
    times, right, names = np.asarray(seconds, dtype=np.float64), np.asarray(solved, dtype=bool), np.asarray(cases)
    if not len(times):
        return None
    until = np.where(right, np.minimum(times, horizon), horizon)
    groups = None if clusters is None else np.asarray(clusters)
    mean = _over_cases(until, names, groups, (horizon, 0.0))
    assert mean.mean is not None
    marks = [_within(until, right, mark, names, groups) for mark in _marks(until[right], horizon)]
    ordered = np.sort(np.where(right, times, math.inf))
    middle = float(ordered[(len(ordered) + 1) // 2 - 1])
    return SolveTimes(
        mean=mean.mean,
        ci95=mean.ci95,
        horizon=horizon,
        median=middle if math.isfinite(middle) else None,
        within=marks,
    )


def _within(
    until: Floats, right: NDArray[np.bool_], mark: float, names: NDArray[Any], groups: NDArray[Any] | None
) -> Within:
    share = _over_cases((right & (until <= mark)).astype(np.float64), names, groups, (0.0, 1.0))
    assert share.mean is not None
    return Within(seconds=mark, share=share.mean, ci95=share.ci95)


def _marks(times: Floats, horizon: float) -> list[float]:
    """Return the times at which to say how much was solved: round ones between the first and the last, and the end."""
    if not len(times):
        return [horizon]
    first = next((n for n, mark in enumerate(_MARKS) if mark >= times.min()), len(_MARKS))
    round_ones = [mark for mark in _MARKS[first:] if mark < horizon]
    needed = [mark for n, mark in enumerate(round_ones) if n == 0 or np.any(times > round_ones[n - 1])]
    return [*needed[: _MOST_MARKS - 1], horizon]


def _over_cases(
    values: Floats, names: NDArray[Any], groups: NDArray[Any] | None, scale: tuple[float, float]
) -> Aggregate:
    """Return the mean over cases of the means over their trials."""
    _, first, codes = np.unique(names, return_index=True, return_inverse=True)
    means = np.bincount(codes, values) / np.bincount(codes)
    return aggregate(means, None, None if groups is None else groups[first], scale)
