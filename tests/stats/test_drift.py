"""The control chart: its false-alarm rate is the stated one, and it sees a drift."""

import numpy as np
import pytest

from fairtrial.stats.drift import RATE, RUNS, control_chart, sigmas


def test_a_step_is_seen_and_noise_is_not():
    noise = [0.001, -0.002, 0.0015, -0.001, 0.002]
    assert not any(point.alarm for point in control_chart(noise, [1e-4] * 5, 1e-4))
    chart = control_chart([*noise, -0.08, -0.09, -0.07], [1e-4] * 8, 1e-4)
    assert [point.alarm for point in chart].index(True) <= 7 and not any(point.alarm for point in chart[:5])
    assert chart[-1].smoothed < 0
    # Without any noise, equal runs are no drift and a difference is.
    assert [point.alarm for point in control_chart([0.0, 0.0, 0.01], [0.0] * 3, 0.0)] == [False, False, True]


def test_limits_are_wider_than_for_one_look():
    assert 2.5 < sigmas() < 3.5


@pytest.mark.simulation
def test_the_false_alarm_rate_is_the_stated_one():
    """Right or wrong answers of 100 cases, three answers each, 100 runs without any change."""
    rng = np.random.default_rng(5)
    charts, alarms = 400, 0
    for _ in range(charts):
        chance = rng.choice([0.05, 0.5, 0.95], 100, p=[0.1, 0.15, 0.75])
        runs = rng.binomial(3, chance, (RUNS + 1, 100)) / 3
        within = 3 * runs * (1 - runs) / 2  # the unbiased variance of one answer
        noise = within.mean(axis=1) / 3 / 100
        chart = control_chart((runs[1:] - runs[0]).mean(axis=1).tolist(), noise[1:].tolist(), float(noise[0]))
        alarms += any(point.alarm for point in chart)
    assert abs(alarms / charts - RATE) < 0.035, alarms / charts
