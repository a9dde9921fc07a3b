"""Ratings from pairwise comparisons: Bradley–Terry with intervals over prompts, and Elo for those who expect it.

One prompt yields many battles, so prompts are the sample: each is left out once (the jackknife), and the resulting
changes give the uncertainty of a rating or of the gap between two. With few battles they happen to agree now and then,
so an error is never smaller than the model's own. Resampling prompts failed with few of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.stats.distributions import t_quantile, t_two_sided
from fairtrial.stats.pair_fit import covariance, fit_p

Floats = NDArray[np.float64]
Battles = NDArray[np.int64]  # their numbers
_SCALE = 400 / math.log(10)
_FLOOR = 1000.0
_SHRINK = 1e-6
_REMEMBERED = 20_000
_MOST_GROUPS = 200


class StyleEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a covariate (such as length) in rating points per standard deviation, the same for all players."""

    points: float
    interval: tuple[float, float] | None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in strength between two players, in log-odds; p is not adjusted."""

    one: int
    other: int
    difference: float
    std_err: float
    p_value: float | None  # None if nothing varies, or no chain of battles links the two
    freedom: int = 0  # degrees of freedom of the error


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """One rating for each player, in the order of their numbers; intervals if prompts were given."""

    ratings: tuple[float, ...]
    intervals: tuple[tuple[float, float] | None, ...] | None
    battles: int
    prompts: int | None
    method: str
    gaps: tuple[Gap, ...] = ()  # for every pair of players, or those with the strongest, if prompts were given
    groups: tuple[int, ...] = ()  # players linked by battles have the same number; only those can be compared
    effects: tuple[StyleEffect, ...] = ()  # one for each covariate
    confounded: bool = False  # whether strength and covariates cannot be separated, as they always go together
    bounded: bool = True  # whether chains of wins link all players both ways; otherwise ratings have no bound
    fit_p: float | None = None  # of the test that one strength for each player explains every pair, if asked for


def bradley_terry(
    one: ArrayLike,
    other: ArrayLike,
    worth: ArrayLike,
    *,
    prompts: ArrayLike | None = None,
    players: int | None = None,
    covariates: ArrayLike | None = None,
    prior: float | None = None,
    alpha: float = 0.05,
    every_gap: bool = True,
    fit: bool = False,
) -> Ratings:
    """Fit ratings by maximum likelihood. The mean rating is 1000; `alpha` is the error level of each interval.

    `worth` is the result of `one`: 1, ½ (a tie is half a win each) or 0. `covariates` (battles × features) say how much
    more of a feature `one` has than `other`; ratings are then adjusted to equal features. For the tests of gaps,
    `prior` wins are added for each player of a pair that met, by default half a win divided by the number of players,
    so that a player who only wins can be placed too. Without `every_gap`, gaps are those of the strongest player to
    each other one. `fit` tests whether one strength for each player explains the battles.
    """
    if covariates is not None:
        z = np.asarray(covariates, dtype=np.float64)
        return _controlled(one, other, worth, z, prompts, players=players, alpha=alpha, every_gap=every_gap)
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    k = players or int(max(a.max(), b.max())) + 1
    codes, back = a * k + b, b * k + a

    def wins(battles: Battles | slice) -> Floats:
        size = k * k
        forward = np.bincount(codes[battles], weights=w[battles], minlength=size)
        backward = np.bincount(back[battles], weights=1 - w[battles], minlength=size)
        return np.asarray(forward + backward, dtype=np.float64).reshape(k, k)

    table = wins(slice(None))
    theta = _strengths(table)
    met = table + table.T > 0
    added = (0.5 / k if prior is None else prior) * met
    whole = None if prompts is None else _strengths(table + added)

    def without(battles: Battles) -> Floats:
        return _strengths(table - wins(battles) + added, whole)  # from the whole it is not far

    moved = None if prompts is None else _leave_one_out(prompts, without)
    by_model = None if whole is None else covariance(whole, table + table.T + 2 * added)
    return Ratings(
        ratings=tuple(float(rating) for rating in _to_rating(theta)),
        intervals=None
        if moved is None or by_model is None
        else _bounds(_to_rating(theta), _SCALE * moved, _SCALE * _errors(by_model), alpha),
        battles=len(w),
        prompts=None if prompts is None else len(np.unique(np.asarray(prompts))),
        method="Bradley–Terry",
        bounded=_connected(table),
        gaps=()
        if whole is None or moved is None or by_model is None
        else _gaps(whole, moved, by_model, _linked(met), _hub(theta, every_gap)),
        groups=_linked(met),
        fit_p=fit_p(a, b, w, np.asarray(prompts), theta) if fit and prompts is not None else None,
    )


def _leave_one_out(prompts: ArrayLike, fitted: Callable[[Battles], Floats]) -> Floats:
    """Return the fits without the battles of each prompt in turn or, if there are many, of 200 groups of prompts."""
    codes = np.unique(np.asarray(prompts), return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count > _MOST_GROUPS:
        codes = np.random.default_rng(0).permutation(count)[codes] % _MOST_GROUPS
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))[:-1]
    return np.asarray([fitted(battles) for battles in np.split(order, ends)])


def _jackknife(moved: Floats) -> Floats:
    """Return the standard error from the values with each group left out."""
    n = len(moved)
    return np.asarray(np.sqrt((n - 1) / n * np.sum((moved - moved.mean(axis=0)) ** 2, axis=0)), dtype=np.float64)


def _errors(by_model: Floats) -> Floats:
    """Return the standard errors in a covariance."""
    return np.asarray(np.sqrt(np.maximum(0.0, np.diag(by_model))), dtype=np.float64)


def _bounds(values: Floats, moved: Floats, by_model: Floats, alpha: float) -> tuple[tuple[float, float] | None, ...]:
    """Return intervals by the larger of two errors: over prompts, and the model's own; None for a single prompt."""
    n = len(moved)
    if n < 2:
        return (None,) * len(values)
    half = t_quantile(1 - alpha / 2, n - 1) * np.maximum(_jackknife(moved), by_model)
    return tuple(
        (float(value - own), float(value + own)) if own > 1e-9 * _SCALE else None
        for value, own in zip(values, half, strict=True)
    )


def _hub(theta: Floats, every_gap: bool) -> int | None:
    """Return the player whose gaps are wanted; None for those of every two."""
    return None if every_gap else int(np.argmax(theta))


def _gaps(theta: Floats, moved: Floats, by_model: Floats, groups: tuple[int, ...], hub: int | None) -> tuple[Gap, ...]:
    """Return the gap of every two players, or of one to each other, the larger of its two errors, and p by t."""
    n, gaps = len(moved), []
    players = range(len(theta))
    for i, j in combinations(players, 2) if hub is None else ((hub, one) for one in players if one != hub):
        difference = float(theta[i] - theta[j])
        model = float(np.sqrt(max(0.0, by_model[i, i] + by_model[j, j] - 2 * by_model[i, j])))
        error = max(model, float(_jackknife((moved[:, i] - moved[:, j])[:, None])[0])) if n > 1 else 0.0
        testable = error > 1e-9 and groups[i] == groups[j]
        p = t_two_sided(difference / error, n - 1) if testable else None
        gaps.append(Gap(one=i, other=j, difference=difference, std_err=error, p_value=p, freedom=n - 1))
    return tuple(gaps)


def _controlled(
    one: ArrayLike,
    other: ArrayLike,
    worth: ArrayLike,
    covariates: Floats,
    prompts: ArrayLike | None,
    *,
    players: int | None,
    alpha: float,
    every_gap: bool,
) -> Ratings:
    """Fit ratings with covariates, by a logistic regression on the players and on their differences."""
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    k = players or int(max(a.max(), b.max())) + 1
    spread = np.sqrt(np.mean(covariates**2, axis=0))  # around zero, as it is arbitrary which of two is called the first
    z = covariates / np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.eye(k)[a] - np.eye(k)[b], z])

    def fitted(weights: Floats, start: Floats | None = None) -> Floats:
        theta = _logistic(design, w, weights, start)
        return np.concatenate([theta[:k] - theta[:k].mean(), theta[k:]])

    def without(battles: Battles) -> Floats:
        weights = np.ones(len(w))
        weights[battles] = 0.0
        return fitted(weights, estimate)

    estimate = fitted(np.ones(len(w)))
    moved = None if prompts is None else _leave_one_out(prompts, without)
    by_model = _by_regression(design, estimate)
    errors = _SCALE * _errors(by_model)
    bounds = None if moved is None else _bounds(_SCALE * estimate, _SCALE * moved, errors, alpha)
    rank = np.linalg.matrix_rank(design)
    full_rank = np.linalg.matrix_rank(design[:, :k]) + int(np.sum(spread > 0))
    table = np.zeros((k, k))
    np.add.at(table, (a, b), w)
    np.add.at(table, (b, a), 1 - w)
    groups = _linked(table + table.T > 0)
    return Ratings(
        ratings=tuple(float(rating) for rating in _to_rating(estimate[:k])),
        intervals=None
        if bounds is None
        else tuple(None if own is None else (own[0] + _FLOOR, own[1] + _FLOOR) for own in bounds[:k]),
        battles=len(w),
        prompts=None if prompts is None else len(np.unique(np.asarray(prompts))),
        method="Bradley–Terry with covariates",
        bounded=_connected(table),
        confounded=bool(rank < full_rank),
        gaps=()
        if moved is None
        else _gaps(estimate[:k], moved[:, :k], by_model, groups, _hub(estimate[:k], every_gap)),
        groups=groups,
        effects=tuple(
            StyleEffect(points=_SCALE * float(effect), interval=own)
            for effect, own in zip(estimate[k:], _effect_bounds(estimate, moved, errors, k), strict=True)
        ),
    )


def _by_regression(design: Floats, estimate: Floats) -> Floats:
    """Return the covariance of the estimates by the model."""
    chance = 1 / (1 + np.exp(-design @ estimate))
    information = (design * (chance * (1 - chance))[:, None]).T @ design
    return np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64)


def _effect_bounds(
    estimate: Floats, moved: Floats | None, errors: Floats, players: int
) -> tuple[tuple[float, float] | None, ...]:
    """Return the 95 % intervals of covariates' effects."""
    if moved is None:
        return (None,) * (len(estimate) - players)
    own = slice(players, None)
    return _bounds(_SCALE * estimate[own], _SCALE * moved[:, own], errors[own], 0.05)


def _logistic(design: Floats, worth: Floats, weights: Floats, start: Floats | None) -> Floats:
    """Fit by maximum likelihood with Newton's method, with the same slight shrinkage as without covariates."""
    theta = np.zeros(design.shape[1]) if start is None else start
    for _ in range(100):
        chance = 1 / (1 + np.exp(-design @ theta))
        gradient = design.T @ (weights * (worth - chance)) - _SHRINK * theta
        hessian = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.solve(hessian + _SHRINK * np.eye(len(theta)), gradient)
        largest = float(np.abs(step).max())
        theta = theta + step * min(1.0, 2.0 / largest if largest > 0 else 1.0)
        if largest < 1e-10:
            break
    return np.asarray(theta, dtype=np.float64)


def _strengths(wins: Floats, start: Floats | None = None) -> Floats:
    """Return the maximum-likelihood log-strengths, by Newton's method; slight shrinkage keeps them finite."""
    k = len(wins)
    games = wins + wins.T
    np.fill_diagonal(games, 0)
    total = wins.sum(axis=1) - np.diag(wins)
    theta = np.zeros(k) if start is None else start
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
    """Return whether a chain of wins leads from every player to every other player."""
    return bool(_reach(wins > 0).all())


def _linked(met: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return a group number for each player, the same for players linked by a chain of battles."""
    return tuple(int(number) for number in np.unique(_reach(met), axis=0, return_inverse=True)[1].ravel())


def _reach(steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return who can be reached from whom; products of numbers take a small part of the time of those of booleans."""
    reach = steps | np.eye(len(steps), dtype=bool)
    for _ in range(max(1, len(steps)).bit_length()):
        paths = reach.astype(np.float32)
        reach = paths @ paths > 0
    return reach


def _to_rating(theta: Floats) -> Floats:
    return _FLOOR + _SCALE * theta


def elo(
    one: ArrayLike, other: ArrayLike, worth: ArrayLike, *, k: float = 32.0, orders: int = 100, seed: int = 0
) -> Ratings:
    """Return Elo ratings, averaged over random orders of the battles, because the order is arbitrary.

    With `orders=1`, the given order is used. Elo forgets: of a million battles only the last thousands matter, so every
    order takes at most 20,000 of them.
    """
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    w = np.asarray(worth, dtype=np.float64)
    rng = np.random.default_rng(seed)
    ratings = np.full((orders, int(max(a.max(), b.max())) + 1), _FLOOR)
    rows = np.arange(orders)
    most = min(len(w), _REMEMBERED)
    in_given_order = orders == 1
    turns = np.arange(len(w))[None, -most:] if in_given_order else _random_orders(rng, len(w), most, orders)
    for turn in turns.T:  # one battle of every order at a time
        first, second, results = a[turn], b[turn], w[turn]
        expected = 1 / (1 + 10 ** ((ratings[rows, second] - ratings[rows, first]) / 400))
        change = k * (results - expected)
        ratings[rows, first] += change
        ratings[rows, second] -= change
    return Ratings(
        ratings=tuple(float(rating) for rating in ratings.mean(axis=0)),
        intervals=None,
        battles=len(w),
        prompts=None,
        method=f"Elo, K = {k:g}" if in_given_order else f"Elo, K = {k:g}, mean of {orders} orders",
    )


def _random_orders(rng: np.random.Generator, count: int, most: int, orders: int) -> NDArray[np.int64]:
    return np.stack([rng.choice(count, most, replace=False) for _ in range(orders)])
