"""Looks that are planned: at equal parts of the cases, 5 % is spent so that all looks together err in 5 % of plans.

A spending function says how much of the error each look may have used up (Lan and DeMets): O'Brien and Fleming's spends
nearly all of it at the end, Pocock's evenly. What a look by itself may err, its nominal level, follows from the joint
distribution of the means at all looks, whose increments are independent (Armitage, McPherson and Rowe).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.stats.distributions import normal_cdf, normal_quantile
from fairtrial.stats.mean import ALPHA, Bounds, Estimate
from fairtrial.stats.normal import normal_shares

Floats = NDArray[np.float64]
Shape = Literal["late", "even"]  # when the error is spent: as O'Brien and Fleming do, or as Pocock does

FIRST_LOOK = 0.04  # the level of the first look where more cases may be added later
FUTILE = 0.1  # chance to find the planned gap at the end, below which it is not worth going on
_STEPS = 128  # of the integral between two boundaries; even, as Simpson's rule needs
_HALVINGS = 60
_TINY, _ALMOST_ALL = 1e-7, 0.99


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One of several planned looks, numbered from 1 on."""

    number: int
    planned: int
    shape: Shape = "late"
    again: int = 1  # which time a plan is extended that was looked at: such looks share the error, too

    @property
    def last(self) -> Look:
        """Return the last look of the same plan."""
        return msgspec.structs.replace(self, number=self.planned)

    @property
    def of_one_arm(self) -> Look:
        """Return the look for means of single arms, which no look decides by: they share the error evenly."""
        return msgspec.structs.replace(self, shape="even")

    def nominal(self, alpha: float = ALPHA) -> float:
        """Return the level of this look by itself, where all looks together may err this often."""
        return _interpolated(alpha * self._part, *_tables(self.planned, self.shape, self.number))

    def p_value(self, p: float) -> float:
        """Return the smallest error of all looks together at which this look, with this p-value by itself, rejects."""
        alphas, nominal = _tables(self.planned, self.shape, self.number)
        return min(1.0, _interpolated(p, nominal, alphas) / self._part)

    @property
    def _part(self) -> float:
        """Return the part of the error that is left to this extension; a plan that is not extended has all of it."""
        return 1.0 if self.again == 1 else level_of_another_look(self.again) / ALPHA


class Looked:
    """An estimate at a planned look: intervals are wider and p-values larger, by what all looks together may err."""

    def __init__(self, estimate: Estimate, look: Look) -> None:
        self.estimate, self.look = estimate, look

    @property
    def mean(self) -> float | None:
        """Return the mean as it is: the interval contains it at every look."""
        return self.estimate.mean

    def interval(self, alpha: float = ALPHA) -> Bounds | None:
        """Return an interval that holds at all looks together."""
        return self.estimate.interval(self.look.nominal(alpha))

    def p_value(self, point: float = 0.0) -> float | None:
        """Return the largest alpha at which the interval still contains the point."""
        p = self.estimate.p_value(point)
        return None if p is None else self.look.p_value(p)

    def p_within(self, margin: float) -> float | None:
        """Return the largest alpha at which the interval still reaches beyond ±margin."""
        p = self.estimate.p_within(margin)
        return None if p is None else self.look.p_value(p)


def level_of_another_look(number: int) -> float:
    """Return the level of an unplanned look, from 1 on: most of 5 % at the first, then half of what is left.

    All of them together err in 5 % at most, however many there are and whatever made one stop.
    """
    return FIRST_LOOK if number == 1 else (ALPHA - FIRST_LOOK) / 2 ** (number - 1)


def more_for_another_look(number: int, power: float = 0.8) -> float:
    """Return how many times as many cases a difference takes at such a look as at a level of 5 %."""
    least, usual = (normal_quantile(1 - level / 2) for level in (level_of_another_look(number), ALPHA))
    return ((least + normal_quantile(power)) / (usual + normal_quantile(power))) ** 2


def ends_of_looks(cases: int, planned: int) -> list[int]:
    """Return how many cases are complete at every look, from the first to the last."""
    return [-(-cases * number // planned) for number in range(1, planned + 1)]


def nominal_levels(planned: int, shape: Shape = "late", alpha: float = ALPHA) -> list[float]:
    """Return the level of every look by itself."""
    return [Look(number=number, planned=planned, shape=shape).nominal(alpha) for number in range(1, planned + 1)]


def chance_at_the_end(z: float, share: float, drift: float, level: float) -> float:
    """Return the chance to find a gap at the last look, which has this nominal level, if it is there.

    `z` is the gap so far in standard errors, after this share of the cases; `drift` the gap that was planned for, in
    standard errors at the end.
    """
    if share >= 1:
        return float(abs(z) > -normal_quantile(level / 2))
    expected = z * math.sqrt(share) + drift * (1 - share)
    return normal_cdf((expected + normal_quantile(level / 2)) / math.sqrt(1 - share))


class Prospects(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan with looks does if there is a gap of some size: how often it is found, and after how many cases."""

    found: float
    share: float  # of the cases that are asked on average


def prospects(planned: int, drift: float, *, shape: Shape = "late", alpha: float = ALPHA) -> Prospects:
    """Return what happens if there is a gap, `drift` standard errors at the end."""
    times = np.arange(1, planned + 1) / planned
    levels = nominal_levels(planned, shape, alpha)
    limits = np.asarray([-normal_quantile(level / 2) * math.sqrt(t) for level, t in zip(levels, times, strict=True)])
    going, found, share = 1.0, 0.0, 0.0
    for above, below in _crossings(times, limits, drift):
        share += going / planned
        going -= above + below
        found += above
    return Prospects(found=found, share=share)


def drift_for(power: float, planned: int, *, shape: Shape = "late", alpha: float = ALPHA) -> float:
    """Return how large a gap has to be, in standard errors at the end, to be found with this probability."""
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if prospects(planned, middle, shape=shape, alpha=alpha).found > power else (middle, high)
        )
    return high


def _crossings(times: Floats, limits: Floats, drift: float) -> list[tuple[float, float]]:
    """Return with which probabilities each look is the first to reject, on both sides."""
    grid, weights = _simpson()
    points, mass = np.zeros(1), np.ones(1)
    found, before = [], 0.0
    for time, limit in zip(times.tolist(), limits.tolist(), strict=True):
        step, ahead = math.sqrt(time - before), points + drift * (time - before)
        above = float(mass @ normal_shares((ahead - limit) / step))
        below = float(mass @ normal_shares((-limit - ahead) / step))
        found.append((above, below))
        reached = limit * grid
        density = _density(reached[None, :], ahead[None, :], mass[None, :], step)[0]
        points, mass, before = reached, density * weights * limit, time
    return found


def _simpson() -> tuple[Floats, Floats]:
    """Return points from −1 to 1, and the weights of Simpson's rule."""
    weights = np.where(np.arange(_STEPS + 1) % 2, 4.0, 2.0) / (3 * _STEPS / 2)
    weights[[0, -1]] /= 2
    return np.linspace(-1.0, 1.0, _STEPS + 1), weights


def _interpolated(value: float, known: Floats, wanted: Floats) -> float:
    """Return what belongs to a value, on a straight line between known pairs of logarithms."""
    if value <= 0.0 or value >= 1.0:
        return min(1.0, max(0.0, value))
    return float(math.exp(np.interp(math.log(value), known, wanted, left=math.log(value) - known[0] + wanted[0])))


@lru_cache(maxsize=256)
def _tables(planned: int, shape: Shape, number: int) -> tuple[Floats, Floats]:
    """Return logarithms of errors of all looks together, and of the level of one look at each of them."""
    alphas, levels = _all_levels(planned, shape)
    return np.log(alphas), np.log(np.maximum.accumulate(levels[number - 1]))


@lru_cache(maxsize=16)
def _all_levels(planned: int, shape: Shape) -> tuple[Floats, Floats]:
    """Return some errors of all looks together, and the nominal levels of every look at each of them."""
    alphas = np.sort(np.append(np.geomspace(_TINY, _ALMOST_ALL, 27), ALPHA))
    times = np.arange(1, planned + 1) / planned
    spent = np.diff(np.asarray([_spent(shape, time, alphas) for time in [0.0, *times]]), axis=0)
    limits = _boundaries(times, spent)
    levels = 2 * normal_shares(-limits / np.sqrt(times)[:, None])
    return np.append(alphas, 1.0), np.column_stack([levels, np.ones(planned)])


def _spent(shape: Shape, time: float, alphas: Floats) -> Floats:
    """Return the error on one side that is used up after a share of the cases."""
    if time <= 0.0:
        return np.zeros_like(alphas)
    if shape == "even":
        return np.asarray(alphas / 2 * math.log(1 + (math.e - 1) * time))
    quarters = [normal_quantile(alpha / 4) for alpha in alphas.tolist()]
    return np.asarray([2 * normal_cdf(quarter / math.sqrt(time)) for quarter in quarters])


def _boundaries(times: Floats, spent: Floats) -> Floats:
    """Return the sums of increments beyond which each look rejects, for every column of errors to spend."""
    grid, weights = _simpson()
    limits = np.empty_like(spent)
    points, mass = np.zeros((spent.shape[1], 1)), np.ones((spent.shape[1], 1))  # where the sum is, and how likely
    before = 0.0
    for number, time in enumerate(times.tolist()):
        step = math.sqrt(time - before)
        limits[number] = _limit(points, mass, step, spent[number])
        if number + 1 < len(times):
            reached = limits[number][:, None] * grid
            density = _density(reached, points, mass, step)
            points, mass = reached, density * weights * limits[number][:, None]
        before = time
    return limits


def _limit(points: Floats, mass: Floats, step: float, wanted: Floats) -> Floats:
    """Return where the next sum lies beyond with the wanted probabilities."""
    low, high = np.zeros(len(wanted)), np.full(len(wanted), 9.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = (mass * normal_shares((points - middle[:, None]) / step)).sum(axis=1)
        low, high = np.where(beyond > wanted, middle, low), np.where(beyond > wanted, high, middle)
    return np.asarray((low + high) / 2)


def _density(at: Floats, points: Floats, mass: Floats, step: float) -> Floats:
    """Return the density of the next sum, of plans that have not stopped."""
    found = np.empty_like(at)
    for row in range(len(at)):
        z = (at[row][:, None] - points[row]) / step
        found[row] = np.exp(-(z**2) / 2) @ mass[row] / (step * math.sqrt(2 * math.pi))
    return found
