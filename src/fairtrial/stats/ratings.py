"""Ratings from comparisons in pairs: Bradley–Terry with intervals over prompts, and Elo for those who expect it.

One prompt yields all its battles, so prompts are what was sampled: each is left out once (the jackknife), and what then
moves is how far a rating, or the gap between two, can be trusted. Resampling them failed with few prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import t_quantile, t_two_sided

Floats = NDArray[np.float64]
_SCALE = 400 / math.log(10)
_FLOOR = 1000.0
_SHRINK = 1e-6
_REMEMBERED = 20_000
_MOST_GROUPS = 200


class StyleEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one standard deviation more of something (length, say) is worth in rating points, whoever has it."""

    points: float
    interval: tuple[float, float] | None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """By how much one player is stronger than another, as a log-odds; p is not adjusted."""

    one: int
    other: int
    difference: float
    std_err: float
    p_value: float | None  # None where nothing varies, or where no chain of battles leads from one to the other


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """One rating for each player, in the order of their numbers; intervals where prompts were given."""

    ratings: tuple[float, ...]
    intervals: tuple[tuple[float, float] | None, ...] | None
    battles: int
    prompts: int | None
    method: str
    gaps: tuple[Gap, ...] = ()  # of every two players, where prompts were given
    groups: tuple[int, ...] = ()  # which players can be told apart at all: those that battles link have one number
    effects: tuple[StyleEffect, ...] = ()  # one for each covariate
    confounded: bool = False  # whether strength and covariates cannot be told apart: they always go together
    bounded: bool = True  # whether everybody has lost and won, directly or in a chain: else ratings have no bound


def bradley_terry(
    one: ArrayLike,
    other: ArrayLike,
    worth: ArrayLike,
    *,
    prompts: ArrayLike | None = None,
    players: int | None = None,
    covariates: ArrayLike | None = None,
    prior: float | None = None,
) -> Ratings:
    """Maximum likelihood; `worth` is what `one` got: 1, ½ (a tie is half a win each) or 0. The mean rating is 1000.

    `covariates` (battles × things) say by how much `one` has more of something than `other`; the ratings are then
    those of equals in these things. Gaps are tested with `prior` wins of everybody against everybody added, half a win
    shared by all players unless it is said: so somebody who only wins has a place too.
    """
    if covariates is not None:
        z = np.asarray(covariates, dtype=np.float64)
        return _controlled(one, other, worth, z, prompts, players=players)
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    k = players or int(max(a.max(), b.max())) + 1
    codes, back = a * k + b, b * k + a

    def wins(weights: Floats | None) -> Floats:
        scale = 1.0 if weights is None else weights
        size = k * k
        forward = np.bincount(codes, weights=w * scale, minlength=size)
        backward = np.bincount(back, weights=(1 - w) * scale, minlength=size)
        return np.asarray(forward + backward, dtype=np.float64).reshape(k, k)

    table = wins(None)
    theta = _strengths(table)
    met = table + table.T > 0
    added = (0.5 / k if prior is None else prior) * met
    moved = None if prompts is None else _left_out(prompts, lambda weights: _strengths(wins(weights) + added))
    return Ratings(
        ratings=tuple(float(rating) for rating in _rated(theta)),
        intervals=None if moved is None else _bounds(_rated(theta), _SCALE * moved),
        battles=len(w),
        prompts=None if prompts is None else len(np.unique(np.asarray(prompts))),
        method="Bradley–Terry",
        bounded=_connected(table),
        gaps=() if moved is None else _gaps(_strengths(table + added), moved, _linked(met)),
        groups=_linked(met),
    )


def _left_out(prompts: ArrayLike, fitted: Callable[[Floats], Floats]) -> Floats:
    """What is fitted with every prompt left out in turn; of many prompts, with every one of 200 groups of them."""
    codes = np.unique(np.asarray(prompts), return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count > _MOST_GROUPS:
        codes = np.random.default_rng(0).permutation(count)[codes] % _MOST_GROUPS
    return np.asarray([fitted((codes != group).astype(np.float64)) for group in range(min(count, _MOST_GROUPS))])


def _jackknife(moved: Floats) -> Floats:
    """The standard error from values with each group left out."""
    n = len(moved)
    return np.asarray(np.sqrt((n - 1) / n * np.sum((moved - moved.mean(axis=0)) ** 2, axis=0)), dtype=np.float64)


def _bounds(values: Floats, moved: Floats) -> tuple[tuple[float, float] | None, ...]:
    """95 % intervals; None where nothing moves, whoever is left out: that tells nothing."""
    n = len(moved)
    if n < 2:
        return (None,) * len(values)
    half = t_quantile(0.975, n - 1) * _jackknife(moved)
    return tuple(
        (float(value - own), float(value + own)) if own > 1e-9 * _SCALE else None
        for value, own in zip(values, half, strict=True)
    )


def _gaps(theta: Floats, moved: Floats, groups: tuple[int, ...]) -> tuple[Gap, ...]:
    """Every two players: their gap, its jackknife error over prompts, and p by Student's t."""
    n, found = len(moved), []
    for i, j in combinations(range(len(theta)), 2):
        difference = float(theta[i] - theta[j])
        error = float(_jackknife((moved[:, i] - moved[:, j])[:, None])[0]) if n > 1 else 0.0
        told = error > 1e-9 and groups[i] == groups[j]
        p = t_two_sided(difference / error, n - 1) if told else None
        found.append(Gap(one=i, other=j, difference=difference, std_err=error, p_value=p))
    return tuple(found)


def _controlled(
    one: ArrayLike,
    other: ArrayLike,
    worth: ArrayLike,
    covariates: Floats,
    prompts: ArrayLike | None,
    *,
    players: int | None,
) -> Ratings:
    """The same with covariates: a logistic regression on who plays and on how they differ."""
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    k = players or int(max(a.max(), b.max())) + 1
    spread = np.sqrt(np.mean(covariates**2, axis=0))  # about zero: which of two is called the first means nothing
    z = covariates / np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.eye(k)[a] - np.eye(k)[b], z])

    def fitted(weights: Floats | None) -> Floats:
        found = _logistic(design, w, weights)
        return np.concatenate([found[:k] - found[:k].mean(), found[k:]])

    found = fitted(None)
    moved = None if prompts is None else _left_out(prompts, fitted)
    bounds = None if moved is None else _bounds(_SCALE * found, _SCALE * moved)
    free = np.linalg.matrix_rank(design)
    told = np.linalg.matrix_rank(design[:, :k]) + int(np.sum(spread > 0))
    table = np.zeros((k, k))
    np.add.at(table, (a, b), w)
    np.add.at(table, (b, a), 1 - w)
    groups = _linked(table + table.T > 0)
    return Ratings(
        ratings=tuple(float(rating) for rating in _rated(found[:k])),
        intervals=None
        if bounds is None
        else tuple(None if own is None else (own[0] + _FLOOR, own[1] + _FLOOR) for own in bounds[:k]),
        battles=len(w),
        prompts=None if prompts is None else len(np.unique(np.asarray(prompts))),
        method="Bradley–Terry with covariates",
        bounded=_connected(table),
        confounded=bool(free < told),
        gaps=() if moved is None else _gaps(found[:k], moved[:, :k], groups),
        groups=groups,
        effects=tuple(
            StyleEffect(points=_SCALE * float(effect), interval=bounds[k + place] if bounds else None)
            for place, effect in enumerate(found[k:])
        ),
    )


def _logistic(design: Floats, worth: Floats, weights: Floats | None) -> Floats:
    """Maximum likelihood by Newton's method, with the same hair of shrinkage as without covariates."""
    scale = np.ones(len(worth)) if weights is None else weights
    theta = np.zeros(design.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-design @ theta))
        gradient = design.T @ (scale * (worth - chance)) - _SHRINK * theta
        hessian = (design * (scale * chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.solve(hessian + _SHRINK * np.eye(len(theta)), gradient)
        largest = float(np.abs(step).max())
        theta = theta + step * min(1.0, 2.0 / largest if largest > 0 else 1.0)
        if largest < 1e-10:
            break
    return np.asarray(theta, dtype=np.float64)


def _strengths(wins: Floats) -> Floats:
    """Log-strengths that make the wins most likely, by Newton's method; a hair of shrinkage keeps them finite."""
    k = len(wins)
    games = wins + wins.T
    np.fill_diagonal(games, 0)
    total = wins.sum(axis=1) - np.diag(wins)
    theta = np.zeros(k)
    for _ in range(100):
        chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        gradient = total - (games * chance).sum(axis=1) - _SHRINK * theta
        weight = games * chance * (1 - chance)
        hessian = np.diag(weight.sum(axis=1) + _SHRINK) - weight
        step = np.linalg.solve(hessian, gradient)
        largest = float(np.abs(step).max())
        theta = theta + step * min(1.0, 2.0 / largest if largest > 0 else 1.0)
        if largest < 1e-10:
            break
    return np.asarray(theta - theta.mean(), dtype=np.float64)


def _connected(wins: Floats) -> bool:
    """Whether from everybody a chain of wins leads to everybody else."""
    reach = (wins > 0) | np.eye(len(wins), dtype=bool)
    for _ in range(max(1, len(wins)).bit_length()):
        reach = reach @ reach
    return bool(reach.all())


def _linked(met: NDArray[np.bool_]) -> tuple[int, ...]:
    """A number for each player, the same where a chain of battles leads from one to the other."""
    reach = met | np.eye(len(met), dtype=bool)
    for _ in range(max(1, len(met)).bit_length()):
        reach = reach @ reach
    return tuple(int(number) for number in np.unique(reach, axis=0, return_inverse=True)[1].ravel())


def _rated(theta: Floats) -> Floats:
    return _FLOOR + _SCALE * theta


def elo(
    one: ArrayLike, other: ArrayLike, worth: ArrayLike, *, k: float = 32.0, orders: int = 100, seed: int = 0
) -> Ratings:
    """Elo's running ratings, averaged over random orders of the battles: the order is nobody's merit.

    One order is the given one. Elo forgets: of a million battles only the last thousands matter, so every order takes
    at most 20,000 of them.
    """
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    rng = np.random.default_rng(seed)
    ratings = np.full((orders, int(max(a.max(), b.max())) + 1), _FLOOR)
    rows = np.arange(orders)
    most = min(len(w), _REMEMBERED)
    given = orders == 1
    turns = np.arange(len(w))[None, -most:] if given else _random_orders(rng, len(w), most, orders)
    for turn in turns.T:  # one battle of every order at a time
        first, second, got = a[turn], b[turn], w[turn]
        expected = 1 / (1 + 10 ** ((ratings[rows, second] - ratings[rows, first]) / 400))
        change = k * (got - expected)
        ratings[rows, first] += change
        ratings[rows, second] -= change
    return Ratings(
        ratings=tuple(float(rating) for rating in ratings.mean(axis=0)),
        intervals=None,
        battles=len(w),
        prompts=None,
        method=f"Elo, K = {k:g}" if given else f"Elo, K = {k:g}, mean of {orders} orders",
    )


def _random_orders(rng: np.random.Generator, count: int, most: int, orders: int) -> NDArray[np.int64]:
    return np.stack([rng.choice(count, most, replace=False) for _ in range(orders)])
