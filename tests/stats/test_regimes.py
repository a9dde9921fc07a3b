"""The short form of benchmarks/STATISTICS.md: the shipped interval in every regime, and where a spreadsheet's t fails."""

import numpy as np
import pytest

from benchmarks.regimes import one_arm, pairs
from benchmarks.statistics import false_rate, page
from benchmarks.statistics_rows import LEAST_HELD, MOST_FALSE, Part, Row

COUNT = 100
SLACK = 3 * (MOST_FALSE * (1 - MOST_FALSE) / COUNT) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("regime", pairs(), ids=lambda regime: regime.what)
def test_two_equal_arms_are_rarely_told_apart(regime):
    false, _, _ = false_rate(regime, COUNT, seed=71)
    assert false <= MOST_FALSE + SLACK


@pytest.mark.slow
@pytest.mark.parametrize("regime", one_arm(), ids=lambda regime: regime.what)
def test_intervals_of_one_arm_hold(regime):
    false, _, _ = false_rate(regime, COUNT, seed=72)
    assert 1 - false >= LEAST_HELD - SLACK


@pytest.mark.simulation
def test_the_regimes_are_hard_enough():
    """A check that cannot fail proves nothing: plain t over cases is wrong in most of the hard ones."""
    hard = [regime for regime in pairs() if "clusters" in regime.what or "one large" in regime.what]
    rates = [false_rate(regime, 40, seed=73)[1] for regime in hard]
    assert np.mean(np.asarray(rates) > 0.15) > 0.7


def test_the_page_says_what_fails():
    rows = [Row("fine", 0.05, 1000, 0.06), Row("not", 0.2, 1000, 0.06), Row("hint", 0.4, 100, None)]
    text = page([Part("A table", "What we do.", rows)], 60, 1000)
    assert (
        "1 outside their bar" in text
        and "| not | 20.0 % | ≤ 6 % | 1,000 | ✗ |" in text
        and "| hint | 40.0 % | –" in text
    )
