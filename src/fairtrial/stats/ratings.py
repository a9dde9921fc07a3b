"""Ratings from comparisons in pairs: Bradley–Terry with intervals over prompts, and Elo for those who expect it."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_SCALE = 400 / math.log(10)
_FLOOR = 1000.0
_SHRINK = 1e-6
_REMEMBERED = 20_000


class StyleEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What one standard deviation more of something (length, say) is worth in rating points, whoever has it."""

    points: float
    interval: tuple[float, float] | None


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """One rating for each player, in the order of their numbers; intervals where prompts were given."""

    ratings: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...] | None
    battles: int
    prompts: int | None
    method: str
    resamples: int = 0
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
    resamples: int = 200,
    seed: int = 0,
) -> Ratings:
    """Maximum likelihood; `worth` is what `one` got: 1, ½ (a tie is half a win each) or 0. The mean rating is 1000.

    One prompt yields all its battles, so the interval resamples prompts, not battles. `covariates` (battles × things)
    say by how much `one` has more of something than `other`; the ratings are then those of equals in these things.
    """
    if covariates is not None:
        z = np.asarray(covariates, dtype=np.float64)
        return _controlled(one, other, worth, z, prompts, players=players, resamples=resamples, seed=seed)
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    k = players or int(max(a.max(), b.max())) + 1
    codes = a * k + b
    back = b * k + a

    def wins(weights: Floats | None) -> Floats:
        scale = 1.0 if weights is None else weights
        size = k * k
        forward = np.bincount(codes, weights=w * scale, minlength=size)
        backward = np.bincount(back, weights=(1 - w) * scale, minlength=size)
        return np.asarray(forward + backward, dtype=np.float64).reshape(k, k)

    table = wins(None)
    ratings = _rated(_strengths(table))
    intervals = None
    count = None
    if prompts is not None:
        count, draws = _resampled(prompts, lambda weights: _rated(_strengths(wins(weights))), resamples, seed)
        intervals = _bounds(draws)
    return Ratings(
        ratings=tuple(float(rating) for rating in ratings),
        intervals=intervals,
        battles=len(w),
        prompts=count,
        method="Bradley–Terry",
        bounded=_connected(table),
        resamples=resamples if prompts is not None else 0,
    )


def _resampled(prompts: ArrayLike, fitted: Callable[[Floats], Floats], resamples: int, seed: int) -> tuple[int, Floats]:
    """How many prompts there are, and what is fitted to battles drawn again, prompt by prompt."""
    groups = np.unique(np.asarray(prompts), return_inverse=True)[1]
    count = int(groups.max()) + 1
    rng = np.random.default_rng(seed)
    even = np.full(count, 1 / count)
    weights = (rng.multinomial(count, even).astype(np.float64)[groups] for _ in range(resamples))
    return count, np.asarray([fitted(drawn) for drawn in weights])


def _bounds(draws: Floats) -> tuple[tuple[float, float], ...]:
    return tuple((float(low), float(high)) for low, high in np.percentile(draws, [2.5, 97.5], axis=0).T)


def _controlled(
    one: ArrayLike,
    other: ArrayLike,
    worth: ArrayLike,
    covariates: Floats,
    prompts: ArrayLike | None,
    *,
    players: int | None,
    resamples: int,
    seed: int,
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
        players_, effects = found[:k], found[k:]
        return np.concatenate([_rated(players_ - players_.mean()), _SCALE * effects])

    found = fitted(None)
    count, bounds = None, None
    if prompts is not None:
        count, draws = _resampled(prompts, fitted, resamples, seed)
        bounds = _bounds(draws)
    free = np.linalg.matrix_rank(design)
    told = np.linalg.matrix_rank(design[:, :k]) + int(np.sum(spread > 0))
    table = np.zeros((k, k))
    np.add.at(table, (a, b), w)
    np.add.at(table, (b, a), 1 - w)
    return Ratings(
        ratings=tuple(float(rating) for rating in found[:k]),
        intervals=bounds[:k] if bounds else None,
        battles=len(w),
        prompts=count,
        method="Bradley–Terry with covariates",
        bounded=_connected(table),
        confounded=bool(free < told),
        resamples=resamples if prompts is not None else 0,
        effects=tuple(
            StyleEffect(points=float(points), interval=bounds[k + place] if bounds else None)
            for place, points in enumerate(found[k:])
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
