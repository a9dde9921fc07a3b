"""Planned looks: nominal levels, p-values of looks, and what a plan does, against published numbers and by simulation."""

import numpy as np
import pytest

from fairtrial.stats.looks import (
    Look,
    Looked,
    chance_at_the_end,
    drift_for,
    ends_of_looks,
    level_of_another_look,
    nominal_levels,
    prospects,
)
from fairtrial.stats.paired import mean_difference

SHAPES = ("late", "even")


@pytest.mark.parametrize(
    ("shape", "levels"),
    [
        ("late", (0.000001, 0.00079, 0.0074, 0.022, 0.0423)),
        ("even", (0.0148, 0.0152, 0.0159, 0.0165, 0.017)),
    ],
)
def test_five_looks_have_the_published_levels(shape, levels):
    assert nominal_levels(5, shape) == pytest.approx(levels, rel=0.1, abs=5e-5)
    assert nominal_levels(1, shape) == pytest.approx([0.05])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 15, 0.2])
def test_all_looks_together_err_as_often_as_they_may(shape, alpha):
    rng = np.random.default_rng(1)
    sums = np.cumsum(rng.standard_normal((400_000, 5)), axis=1) / np.sqrt(np.arange(1, 6))
    levels = np.asarray(nominal_levels(5, shape, alpha))
    from scipy.stats import norm

    wrong = (2 * norm.sf(np.abs(sums)) < levels).any(axis=1).mean()
    assert wrong == pytest.approx(alpha, abs=4 * np.sqrt(alpha / 400_000))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("again", [1, 3])
def test_level_and_p_agree(shape, number, again):
    look = Look(number=number, planned=5, shape=shape, again=again)
    for alpha in np.geomspace(1e-6, 0.99, 40):
        if (
            look.nominal(alpha) > 1e-15
        ):  # where a first look has a level that no data reach, there is none to tell apart
            assert look.p_value(look.nominal(alpha)) == pytest.approx(alpha, rel=1e-9)
    found = [look.nominal(alpha) for alpha in np.linspace(0.001, 0.999, 60)]
    assert found == sorted(found)
    assert look.nominal(0.0) == 0.0 and look.p_value(1.0) == 1.0


@pytest.mark.parametrize("shape", SHAPES)
def test_verdict_interval_and_p_of_a_look_agree(shape):
    rng = np.random.default_rng(2)
    for _ in range(60):
        gains = np.clip(rng.normal(rng.choice([0, 0.05, 0.15]), 0.25, 60), -1, 1)
        found = Looked(
            mean_difference(gains, np.zeros(60)), Look(number=int(rng.integers(1, 6)), planned=5, shape=shape)
        )
        low, high = found.interval()
        assert low <= found.mean <= high
        assert (found.p_value() < 0.05) == (low > 0 or high < 0)


def test_what_a_plan_does_is_what_was_simulated():
    """The shares of cases and of plans that find the gap: formulas that hold, 3, first row and last."""
    drift = drift_for(0.94, 1)
    wanted = {"late": ((0.93, 0.71), (1.0, 0.51), (1.0, 0.41)), "even": ((0.89, 0.59), (1.0, 0.34), (1.0, 0.24))}
    for shape, rows in wanted.items():
        for times, (found, share) in zip((1, 1.5, 2), rows, strict=True):
            plan = prospects(5, times * drift, shape=shape)
            assert plan.found == pytest.approx(found, abs=0.01) and plan.share == pytest.approx(share, abs=0.02)
        assert prospects(5, 0.0, shape=shape).share > 0.97
    assert (drift_for(0.8, 5) / drift_for(0.8, 1)) ** 2 == pytest.approx(1.025, abs=0.01)  # published: 1.028


def test_the_chance_at_the_end_is_what_the_rest_of_the_cases_does():
    rng = np.random.default_rng(3)
    share, drift, z = 0.4, 3.0, 0.5
    rest = rng.normal(drift * (1 - share), np.sqrt(1 - share), 400_000)
    found = (z * np.sqrt(share) + rest > 1.96).mean()
    assert chance_at_the_end(z, share, drift, 0.05) == pytest.approx(found, abs=0.004)


def test_looks_that_nobody_planned_share_five_percent():
    assert [level_of_another_look(number) for number in (1, 2, 3)] == pytest.approx([0.04, 0.005, 0.0025])
    assert sum(map(level_of_another_look, range(1, 60))) == pytest.approx(0.05)


def test_looks_are_after_equal_parts():
    assert ends_of_looks(100, 5) == [20, 40, 60, 80, 100]
    assert ends_of_looks(23, 5) == [5, 10, 14, 19, 23]
