"""The control chart: its false-alarm rate is the stated one in many worlds, and it sees a drift."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.stats.drift import RATE, REFERENCE, RUNS, control_chart, sigmas

EVEN = np.ones(100)


def runs_of(chances: np.ndarray, repeats: int, rng: np.random.Generator, *, same_in_a_run: bool = False):
    """Scores of runs × cases, and the variance of each run's mean that repeats within it show."""
    if same_in_a_run:  # temperature 0: a model says the same again in a run, and something else in another
        return rng.binomial(1, chances).astype(float), [0.0] * len(chances)
    scores = rng.binomial(repeats, chances) / repeats
    if repeats == 1:
        return scores, None
    answer = float(np.mean(repeats * scores * (1 - scores) / (repeats - 1)))
    return scores, [answer / repeats / chances.shape[1]] * len(chances)


WORLDS = {
    "right or wrong": lambda rng: rng.choice([0.05, 0.5, 0.95], 100, p=[0.1, 0.15, 0.75]),
    "beta(2, 1)": lambda rng: rng.beta(2, 1, 100),
    "saturated": lambda rng: np.where(rng.random(100) < 0.95, 0.998, 0.9),
    "few cases, saturated": lambda rng: np.where(rng.random(20) < 0.95, 0.998, 0.9),
}


def test_a_step_is_seen_and_noise_is_not():
    rng = np.random.default_rng(4)
    quiet = rng.binomial(3, 0.8, (14, 100)) / 3
    assert not any(point.alarm for point in control_chart(quiet, EVEN))
    worse = np.vstack([quiet, rng.binomial(3, 0.65, (4, 100)) / 3])
    chart = control_chart(worse, EVEN)
    assert len(chart) == 18 - REFERENCE and [point.alarm for point in chart].index(True) in (6, 7, 8)
    assert chart[-1].smoothed < 0 and chart[-1].difference < -0.05


def test_equal_runs_are_no_drift_and_one_answer_of_a_hundred_is_not_yet_one():
    same = np.ones((12, 100))
    assert [point.alarm for point in control_chart(same, EVEN)] == [False] * 4
    same[-1, 0] = 0
    assert not control_chart(same, EVEN)[-1].alarm
    same[-1, :20] = 0
    assert control_chart(same, EVEN)[-1].alarm


def test_what_repeats_do_not_show_is_seen_between_runs():
    """Within a run all answers are the same; from run to run a fifth of them is not."""
    rng = np.random.default_rng(7)
    scores, within = runs_of(np.full((30, 100), 0.8), 3, rng, same_in_a_run=True)
    assert not any(point.alarm for point in control_chart(scores, EVEN, within))


def test_a_run_with_fewer_answers_varies_more():
    scores = np.random.default_rng(1).binomial(3, 0.8, (10, 100)) / 3
    even, odd = ([0.002] * 10, [0.002] * 9 + [0.006])
    limits = [control_chart(scores, EVEN, within)[-1].limit for within in (even, odd)]
    assert limits[1] > 1.05 * limits[0]


def test_limits_are_wider_than_for_one_look():
    assert 2.5 < sigmas() < 3.5


@pytest.mark.simulation
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("repeats", [1, 3])
def test_the_false_alarm_rate_is_the_stated_one(world: str, repeats: int):
    rng = np.random.default_rng(5)
    charts, alarms = 150, 0
    for _ in range(charts):
        chances = WORLDS[world](rng)
        scores, within = runs_of(np.tile(chances, (RUNS, 1)), repeats, rng)
        alarms += any(point.alarm for point in control_chart(scores, np.ones(len(chances)), within))
    assert alarms / charts < RATE + 0.06, alarms / charts


@pytest.mark.simulation
def test_a_loss_of_five_points_is_seen_within_twenty_runs():
    """It was in 40 % of charts, when every run was compared with the first one alone."""
    rng = np.random.default_rng(6)
    seen = 0
    for _ in range(60):
        chances = np.tile(rng.choice([0.05, 0.5, 0.95], 100, p=[0.1, 0.15, 0.75]), (REFERENCE + 22, 1))
        chances[-20:] = np.clip(chances[-20:] - 0.05, 0, 1)
        scores, within = runs_of(chances, 3, rng)
        seen += any(point.alarm for point in control_chart(scores, EVEN, within))
    assert seen >= 55, seen
