"""Amounts per solved trial, and times to solve: by hand, and by simulation."""

import numpy as np
import pytest

from fairtrial.stats.solving import per_solved, solve_times, times_dearer


def test_the_cost_of_all_trials_over_those_that_were_solved():
    found = per_solved([1.0, 2.0, 3.0, 6.0], [1, 0, 1, 1])
    assert found.value == pytest.approx(12 / 3) and found.ci95[0] < 4 < found.ci95[1]


@pytest.mark.parametrize(("amounts", "solved"), [([1.0, 2.0], [0, 0]), ([0.0, 0.0], [1, 1]), ([], [])])
def test_nothing_solved_or_spent_has_no_ratio(amounts, solved):
    assert per_solved(amounts, solved) is None


def test_one_solved_unit_says_nothing_about_how_far_off_it_is():
    assert per_solved([1.0, 2.0, 3.0], [0, 1, 0]).ci95 is None
    assert per_solved([1.0], [1]).ci95 is None
    assert per_solved([1e-9, 1e9], [1, 1]).ci95 is None  # from nothing to more money than there is


def test_the_unit_of_money_makes_no_difference_and_the_same_is_the_same_every_time():
    rng = np.random.default_rng(5)
    usd, solved = rng.lognormal(size=30), rng.random(30) < 0.5
    one, cents = per_solved(usd, solved), per_solved(100 * usd, solved)
    assert cents.value == pytest.approx(100 * one.value) and cents.ci95 == pytest.approx([100 * x for x in one.ci95])
    assert per_solved(usd, solved) == one


def test_clusters_are_the_units():
    usd, solved = np.tile([1.0, 2.0, 4.0, 8.0], 5), np.tile([1, 0, 1, 1], 5)
    together = per_solved(usd, solved, np.tile(range(4), 5))
    assert together.units == 4 and together.value == pytest.approx(per_solved(usd, solved).value)
    assert np.ptp(together.ci95) > 1.5 * np.ptp(per_solved(usd, solved).ci95)


def test_two_arms_on_the_same_cases():
    rng = np.random.default_rng(3)
    hard, solved = rng.lognormal(0, 1, 40), rng.random(40) < 0.7
    ratio = times_dearer((2 * hard, hard), (solved, solved))
    assert ratio.value == pytest.approx(2) and ratio.ci95 == pytest.approx((2, 2))  # the cases are as dear for both
    assert times_dearer((hard, hard), (solved, 0 * solved)) is None


def _world(rng, n, p, spread, more, repeats):
    """Sums by case: hard cases are solved less often, cases differ in cost, and what is not solved costs `more`."""
    chance = rng.beta(3 * p, 3 * (1 - p), n)[:, None]
    solved = rng.random((n, repeats)) < chance
    usd = rng.lognormal(0, spread, (n, 1)) * rng.lognormal(0, 0.3, (n, repeats)) * np.where(solved, 1, more)
    return usd.sum(1), solved.sum(1).astype(float)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("n", "p", "spread", "more", "repeats"),
    [(20, 0.5, 0.7, 1, 1), (20, 0.3, 0.7, 2, 1), (15, 0.2, 0.7, 1, 1), (30, 0.8, 1.0, 3, 1), (10, 0.5, 0.5, 1, 3)],
)
def test_intervals_of_the_amount_per_solved_hold(n, p, spread, more, repeats):
    rng = np.random.default_rng(11)
    usd, solved = _world(rng, 400_000, p, spread, more, repeats)
    truth, held, worlds = usd.sum() / solved.sum(), 0, 0
    for _ in range(300):
        found = per_solved(*_world(rng, n, p, spread, more, repeats))
        if found is not None and found.ci95 is not None:
            worlds += 1
            held += found.ci95[0] <= truth <= found.ci95[1]
    assert worlds > 200 and held / worlds >= 0.93


@pytest.mark.simulation
def test_intervals_of_the_ratio_of_two_arms_hold():
    rng = np.random.default_rng(12)

    def both(n):
        hard, chance = rng.lognormal(0, 0.7, n), rng.beta(1.5, 1.5, n)
        one, other = rng.random(n) < chance, rng.random(n) < chance
        return (hard * rng.lognormal(0.5, 0.3, n), hard * rng.lognormal(0, 0.3, n)), (one, other)

    usd, solved = both(400_000)
    truth = (usd[0].sum() / solved[0].sum()) / (usd[1].sum() / solved[1].sum())
    found = [times_dearer(*both(25)) for _ in range(300)]
    held = [one.ci95[0] <= truth <= one.ci95[1] for one in found if one is not None and one.ci95 is not None]
    assert len(held) > 250 and np.mean(held) >= 0.93


class TestTimes:
    """Ten cases: five solved after 1 to 5 seconds, five not solved after 2, within a minute."""

    SECONDS = (1, 2, 3, 4, 5, 2, 2, 2, 2, 60)
    SOLVED = (1, 1, 1, 1, 1, 0, 0, 0, 0, 0)

    def test_what_is_not_solved_counts_with_all_the_time_there_was(self):
        found = solve_times(self.SECONDS, self.SOLVED, range(10), 60.0)
        assert found.mean == pytest.approx((15 + 5 * 60) / 10) and found.horizon == 60
        assert [(one.seconds, one.share) for one in found.within] == [(1.0, 0.1), (5.0, 0.5), (60.0, 0.5)]
        assert found.median == 5 and found.ci95[0] < found.mean < found.ci95[1] <= 60

    def test_with_fewer_than_half_solved_there_is_no_median(self):
        assert solve_times(self.SECONDS, [1, 0, *[0] * 8], range(10), 60.0).median is None

    def test_whoever_gives_up_soon_is_not_quick(self):
        """The mean of the solved alone would be 1 second for both."""
        one = solve_times([1, 1, 1, 1], [1, 1, 1, 1], range(4), 60.0)
        other = solve_times([1, 0.1, 0.1, 0.1], [1, 0, 0, 0], range(4), 60.0)
        assert (one.mean, other.mean) == (1.0, pytest.approx((1 + 3 * 60) / 4))

    def test_what_was_solved_when_the_time_was_over_is_solved_then(self):
        assert solve_times([60.0], [1], [0], 60.0).within[-1].share == 1.0

    def test_repeats_belong_to_their_case(self):
        found = solve_times([1, 1, 1, 60], [1, 1, 1, 0], [0, 0, 0, 1], 60.0)
        assert found.mean == pytest.approx((1 + 60) / 2) and found.within[-1].share == 0.5

    def test_no_trials_no_times(self):
        assert solve_times([], [], [], 60.0) is None
