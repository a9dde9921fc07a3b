"""What a run promises to detect: repeats of it, from the same population, do so in at least 4 of 5."""

import numpy as np
import pytest

from fairtrial.stats.bounded import share_above
from fairtrial.stats.foresight import Repeats, _below_zero
from fairtrial.stats.mean import Mean
from fairtrial.stats.planning import cases_like, is_rough, smallest_detectable

PILOTS, REPEATS = 30, 12


def mean_of(d):
    return Mean(d, bounds=(-1.0, 1.0), span=1.0)


def normal(sd):
    return lambda rng, n, delta: np.clip(rng.normal(delta, sd, n), -1, 1)


def right_or_wrong(differ):
    def draw(rng, n, delta):
        luck, both = rng.random(n), max(differ, delta)
        return np.where(luck < (both + delta) / 2, 1.0, np.where(luck < both, -1.0, 0.0))

    return draw


def marks(sd):
    def draw(rng, n, delta):
        steps = np.floor(delta / 0.25 + rng.random(n))
        return np.clip(np.round(4 * rng.normal(0, sd, n)) / 4 + 0.25 * steps, -1, 1)

    return draw


def mostly_tied(share, sd):
    def draw(rng, n, delta):
        some, gained = rng.random(n) < share, rng.random(n) < share + 0.2
        return np.clip(np.where(some, rng.normal(0, sd, n), 0) + np.where(gained, delta / (share + 0.2), 0), -1, 1)

    return draw


def rare(share, size, noise):
    def draw(rng, n, delta):
        large = np.where(rng.random(n) < share, size, 0.0)
        return np.clip(large + rng.normal(delta - share * size, noise, n), -1, 1)

    return draw


def skewed(size):
    return lambda rng, n, delta: np.clip(rng.exponential(size, n) - size + delta, -1, 1)


def kept(draw, n, seed):
    """How often repeats detect what their pilot promised, and whether the promises were called rough."""
    rng = np.random.default_rng(seed)
    seen, rough = [], []
    for _ in range(PILOTS):
        pilot = mean_of(draw(rng, n, 0.02))
        promised = smallest_detectable(pilot)
        if promised is None:
            continue
        rough.append(is_rough(pilot))
        for _ in range(REPEATS):
            found = mean_of(draw(rng, n, promised))
            p = found.p_value()
            seen.append(p is not None and p < 0.05 and found.mean > 0)
    return float(np.mean(seen)), float(np.mean(rough))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "n"),
    [
        (normal(0.05), 10),
        (normal(0.3), 20),
        (normal(0.1), 100),
        (normal(0.05), 400),
        (right_or_wrong(0.1), 20),
        (right_or_wrong(0.1), 50),
        (right_or_wrong(0.4), 20),
        (marks(0.15), 50),
        (marks(0.3), 100),
        (mostly_tied(0.1, 0.5), 50),
        (mostly_tied(0.3, 0.3), 100),
        (skewed(0.1), 100),
        (skewed(0.3), 200),
        (rare(0.05, 0.9, 0.05), 50),
        (rare(0.1, -0.5, 0.05), 100),
        (rare(0.05, -0.5, 0.1), 200),
    ],
)
def test_the_promise_is_kept_in_4_of_5(draw, n):
    """30 × 12 repeats: of a share of 80 %, 74 % are seen in one of a hundred such tests."""
    assert kept(draw, n, seed=n)[0] >= 0.74


@pytest.mark.slow
@pytest.mark.parametrize(("share", "size", "n"), [(0.02, -1.0, 50), (0.05, -0.9, 20)])
def test_what_depends_on_cases_that_nobody_saw_is_called_rough(share, size, n):
    """A drop that a pilot of so few cases hardly shows: no rule can know of it."""
    seen, rough = kept(rare(share, size, 0.03), n, seed=n)
    assert seen < 0.8 and rough == 1


def test_ordinary_differences_are_not_rough():
    rng = np.random.default_rng(4)
    assert not is_rough(mean_of(normal(0.3)(rng, 50, 0.0))) and not is_rough(mean_of(right_or_wrong(0.1)(rng, 40, 0.0)))
    assert is_rough(mean_of(normal(0.05)(rng, 50, 0.0)))


def quick_p(row):
    return _below_zero(row[None, :], np.ones((1, len(row))), -1.0)[0]


def test_many_units_are_taken_together():
    """Neighbours are one value: what is detectable hardly changes."""
    pilot = mean_of(rare(0.02, -0.6, 0.03)(np.random.default_rng(7), 200, 0.0))
    each, grouped = (Repeats(pilot, n).smallest(0.05, 0.2, guess=0.02) for n in (200, 201))
    assert grouped == pytest.approx(each, rel=0.15)
    assert 0.3 < Repeats(pilot, 2000).smallest(0.05, 0.2, guess=0.01) / (each / 10**0.5) < 1.1


def test_the_quick_p_is_that_of_the_interval():
    rng = np.random.default_rng(5)
    for n, centre, sd in ((10, 0.45, 0.1), (20, 0.2, 0.1), (50, 0.1, 0.25), (30, 0.25, 0.5), (100, 0.05, 0.1)):
        values = np.clip(rng.normal(centre, sd, (20, n)), -1, 1)
        exact = np.asarray([1 - share_above(*mean_of(row).with_unseen(-1.0), 0.0) for row in values])
        quick = np.asarray([quick_p(row) for row in values])
        assert np.abs(quick / exact - 1)[exact < 0.2] == pytest.approx(0, abs=0.05)
    six = np.zeros((1, 40))
    six[0, :6] = 1.0
    assert quick_p(six[0]) == pytest.approx(0.5**6, rel=0.05)


def test_more_cases_detect_smaller_differences():
    pilot = mean_of(right_or_wrong(0.3)(np.random.default_rng(6), 40, 0.05))
    smallest = [Repeats(pilot, n).smallest(0.05, 0.2, guess=0.1) for n in (20, 40, 80, 160)]
    assert smallest == sorted(smallest, reverse=True) and smallest[0] > 2 * smallest[-1]
    assert Repeats(pilot, 5).smallest(0.05, 0.2, guess=0.1) is None  # five wins of five are no proof
    sd = float(np.std(pilot.unit_values, ddof=1))
    needed = cases_like(pilot, 20, sd, smallest[2], alpha=0.05)
    assert 60 <= needed <= 90 and cases_like(pilot, 400, sd, smallest[2], alpha=0.05) == 400
