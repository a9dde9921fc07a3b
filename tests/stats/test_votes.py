"""Ranks by votes hold with few of them, and where no strengths explain who won, nobody is ranked."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.analyse.battles import Battles
from fairtrial.analyse.rank import better_by_rating, rated
from fairtrial.stats import bradley_terry
from fairtrial.stats.pair_fit import FIT_LEVEL, covariance, fit_p


def votes(seed: int, players: int, count: int, chances: np.ndarray | None = None, *, per_prompt: int = 1) -> Battles:
    """Random pairs; `chances[i, j]` is how often i is preferred to j, by default always one half."""
    rng = np.random.default_rng(seed)
    one = rng.integers(0, players, count)
    other = (one + rng.integers(1, players, count)) % players
    sure = np.full((players, players), 0.5) if chances is None else chances
    worth = (rng.random(count) < sure[one, other]).astype(float)
    return Battles(one, other, worth, np.arange(count) // per_prompt)


CYCLE = np.array([[0.5, 0.85, 0.25], [0.15, 0.5, 0.85], [0.75, 0.15, 0.5]])  # a circle, not quite even


@pytest.mark.simulation
@pytest.mark.parametrize(("players", "count"), [(4, 8), (10, 30), (10, 50)])
def test_equal_players_are_not_ranked_by_sparse_votes(players: int, count: int) -> None:
    """By the jackknife alone 8 to 22 % were, as few battles happen to agree."""
    ranked = sum(better_by_rating(rated(votes(seed, players, count), players)).any() for seed in range(150))
    assert ranked <= 3, ranked


@pytest.mark.simulation
def test_a_circle_ranks_nobody_and_strengths_do() -> None:
    found = [rated(votes(seed, 3, 90, CYCLE), 3, fit=True) for seed in range(100)]
    assert sum(better_by_rating(one).any() for one in found) <= 3
    theta = np.array([0.0, 0.6, 1.2])
    chances = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    rejected = sum(rated(votes(seed, 3, 90, chances), 3, fit=True).fit_p < FIT_LEVEL for seed in range(200))
    assert rejected <= 20, rejected  # 5 % and what chance adds
    several = sum(rated(votes(seed, 4, 120, per_prompt=6), 4, fit=True).fit_p < FIT_LEVEL for seed in range(200))
    assert several <= 20, several


@pytest.mark.slow
def test_the_model_has_the_errors_of_statsmodels() -> None:
    import statsmodels.api as sm

    found = votes(1, 4, 300, None)
    table = np.zeros((4, 4))
    np.add.at(table, (found.one, found.other), found.worth)
    np.add.at(table, (found.other, found.one), 1 - np.asarray(found.worth))
    theta = (np.asarray(bradley_terry(found.one, found.other, found.worth).ratings) - 1000) / (400 / np.log(10))
    ours = covariance(theta, table + table.T)
    design = np.eye(4)[found.one] - np.eye(4)[found.other]
    fitted = sm.GLM(found.worth, design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-12)  # gaps to the first
    errors = [np.sqrt(ours[0, 0] + ours[i, i] - 2 * ours[0, i]) for i in (1, 2, 3)]
    assert errors == pytest.approx(fitted.bse, rel=1e-4)


def test_two_players_always_fit() -> None:
    assert fit_p([0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 2], np.array([0.3, -0.3])) is None


def test_ties_alone_say_how_little_is_known() -> None:
    """Every vote a tie: no jackknife sees an error, and the model's own is still there."""
    found = bradley_terry([0] * 8, [1] * 8, [0.5] * 8, prompts=np.arange(8))
    assert found.gaps[0].p_value == pytest.approx(1.0) and found.gaps[0].std_err > 0.5
    assert found.intervals is not None and found.intervals[0] is not None and found.intervals[0][0] < 900
