"""Do battles fit one strength for each player? Where they go in circles, no ratings predict them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
FIT_LEVEL = 0.05  # with a smaller p, one strength for each player does not explain the battles
_DRAWS, _MOST_GROUPS = 399, 200
_STEPS, _SHRINK = 12, 1e-6


def covariance(theta: Floats, games: Floats) -> Floats:
    """Return the covariance of strengths by the model: the inverse of the information in `games` per pair."""
    chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    weight = games * chance * (1 - chance)
    np.fill_diagonal(weight, 0)
    return np.asarray(np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight, hermitian=True), dtype=np.float64)


def fit_p(one: ArrayLike, other: ArrayLike, worth: ArrayLike, prompts: ArrayLike, theta: Floats) -> float | None:
    """Return how often battles as these would be as far from the fitted chances of every pair, if the model held.

    The distance is χ² over pairs. Its distribution is drawn in two ways, and the larger p counts: from the fitted
    chances, and fitted again, which holds with few battles; and by turning the rests of whole prompts around, which
    holds where one prompt yields many battles. None where every pair is fitted anyway, as with two players.
    """
    a, b = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    first = a < b
    low, high = np.where(first, a, b), np.where(first, b, a)
    won = np.where(first, np.asarray(worth, dtype=np.float64), 1 - np.asarray(worth, dtype=np.float64))
    codes, pair = np.unique(low * len(theta) + high, return_inverse=True)
    design = np.zeros((len(codes), len(theta)))
    design[np.arange(len(codes)), codes // len(theta)] = 1
    design[np.arange(len(codes)), codes % len(theta)] = -1
    if len(codes) <= np.linalg.matrix_rank(design):
        return None
    games, chance = np.bincount(pair), _chances(design, theta[None])[0]
    of_prompts = _rests_of_prompts(np.asarray(prompts), pair, won - chance[pair], len(codes))
    variance = games * chance * (1 - chance)
    found = float(_distances(of_prompts.sum(axis=0)[None], variance)[0])
    rng = np.random.default_rng(0)
    drawn = rng.binomial(games, chance, (_DRAWS, len(codes))).astype(np.float64)
    again = _chances(design, _refitted(design, games, drawn, theta))
    by_model = _distances(drawn - games * again, games * again * (1 - again))
    turned = rng.choice([-1.0, 1.0], (_DRAWS, len(of_prompts))) @ of_prompts
    inverse = np.linalg.pinv((design * variance[:, None]).T @ design, hermitian=True)
    explained = (turned @ design @ inverse @ design.T) * variance  # by other strengths
    by_prompt = _distances(turned - explained, variance)
    beyond = max(np.sum(distances >= found * (1 - 1e-9)) for distances in (by_model, by_prompt))
    return float((beyond + 1) / (_DRAWS + 1))


def _chances(design: Floats, theta: Floats) -> Floats:
    """Return how often the first of every pair wins, for each row of strengths."""
    return np.asarray(1 / (1 + np.exp(-theta @ design.T)), dtype=np.float64)


def _distances(rests: Floats, variance: Floats) -> Floats:
    """Return χ² of each row."""
    return np.asarray(np.sum(rests**2 / np.maximum(variance, 1e-9), axis=1), dtype=np.float64)


def _refitted(design: Floats, games: NDArray[np.intp], won: Floats, start: Floats) -> Floats:
    """Return the strengths that each row of wins has, by Newton's method; those without a bound stay large."""
    theta = np.tile(start, (len(won), 1))
    each, i, j = np.arange(len(start)), design.argmax(axis=1), design.argmin(axis=1)
    for _ in range(_STEPS):
        chance = _chances(design, theta)
        information = np.zeros((len(won), len(start), len(start)))
        information[:, i, j] = information[:, j, i] = -games * chance * (1 - chance)
        information[:, each, each] = _SHRINK - information.sum(axis=2)
        step = np.linalg.solve(information, ((won - games * chance) @ design - _SHRINK * theta)[..., None])[..., 0]
        theta = theta + step * np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 2.0))
    return theta


def _rests_of_prompts(prompts: NDArray[np.generic], pair: NDArray[np.intp], rests: Floats, pairs: int) -> Floats:
    """Return the sum of rests per prompt, or per group of prompts if there are many, and pair."""
    codes = np.unique(prompts, return_inverse=True)[1]
    count = int(codes.max()) + 1
    if count > _MOST_GROUPS:
        codes, count = np.random.default_rng(0).permutation(count)[codes] % _MOST_GROUPS, _MOST_GROUPS
    sums = np.bincount(codes * pairs + pair, weights=rests, minlength=count * pairs)
    return np.asarray(sums.reshape(count, pairs), dtype=np.float64)
