"""What still holds where nobody can tell: golden values, and that it is right as often as it promises."""

import numpy as np
import pytest

from fairtrial.stats.breakpoint import breakpoint_of
from fairtrial.stats.mean import Mean
from tests.stats.test_mean import FEW, PAIRS, TEN


@pytest.mark.parametrize(
    ("d", "points"), [(TEN, 0.283374), ([0.02] * 20, 0.123773), (FEW, 1), ([0.05] * 19 + [-0.95], None)]
)
def test_golden(d, points):
    found, turned = (breakpoint_of(Mean(sign * np.asarray(d), **PAIRS), 0.05) for sign in (1, -1))
    assert found == turned
    assert points == (None if found is None else pytest.approx(points, abs=2e-6))
    if found is not None:
        assert found.points == pytest.approx(points, abs=2e-6)


@pytest.mark.parametrize("d", [TEN, [0.02] * 20, [0.1] * 30, [*[0.2, 0.1] * 10, -0.05]])
def test_a_scale_that_ends_there_would_decide(d):
    """With a little less than the breakpoint as the largest difference, the verdict is reached; with more it is not."""
    found = breakpoint_of(Mean(d, **PAIRS), 0.05)
    assert found.points >= found.worst_seen == max(0, -min(d))
    for share, decided in ((0.999, True), (1.001, False)):
        end = max(share * found.points, *d)
        mean = Mean(d, bounds=(-share * found.points, end), span=1.0)
        assert mean.method == "bounded" and (mean.p_value() < 0.05) is decided


def test_nothing_holds_where_t_cannot_tell_either():
    assert breakpoint_of(Mean([0.1, -0.1, 0.2, -0.15], **PAIRS), 0.05) is None
    assert breakpoint_of(Mean([0.0] * 5, **PAIRS), 0.05) is None and breakpoint_of(Mean([1.0], **PAIRS), 0.05) is None
    assert breakpoint_of(Mean([3.0, 2.0, 4.0]), 0.05) is None  # no scale
    assert breakpoint_of(Mean(TEN, **PAIRS), 0.01).points < breakpoint_of(Mean(TEN, **PAIRS), 0.05).points


def test_only_what_goes_well_beyond_what_was_seen_is_worth_saying():
    assert breakpoint_of(Mean(TEN, **PAIRS), 0.05).tells
    worse = breakpoint_of(Mean([*[0.2] * 12, -0.4], **PAIRS), 0.05)
    assert worse.worst_seen == 0.4 < worse.points < 0.6 and not worse.tells


@pytest.mark.simulation
@pytest.mark.slow
def test_it_is_false_as_rarely_as_a_verdict():
    """A gain in nearly every case, and a rare loss of 30 points that makes up for it: the mean is 0."""
    rng, false, said = np.random.default_rng(11), 0, 0
    for _ in range(4000):
        loses = rng.random(20) < 0.1
        d = np.where(loses, -0.3, 0.3 * 0.1 / 0.9) + rng.normal(0, 0.01, 20)
        mean = Mean(np.clip(d, -1, 1), **PAIRS)
        found = breakpoint_of(mean, 0.05) if (mean.mean or 0) > 0 and mean.p_value() >= 0.05 else None
        said += found is not None
        false += found is not None and found.points >= 0.33  # more than a case can lose
    assert said > 400 and false < 0.06 * 4000
