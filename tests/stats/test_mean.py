"""The one interval and the formulas around it: values worked out elsewhere, reference libraries, and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.stats import (
    ControlledMean,
    LabelledMean,
    Mean,
    aggregate,
    bradley_terry,
    cases_for_equivalence,
    cases_for_gate,
    chance_to_see,
    corrected_mean,
    corrected_share,
    detectable,
    holm,
    holm_levels,
    lang_reiczigel,
    mean_difference,
    pass_at_k,
    pass_hat_k,
    power,
)
from fairtrial.stats.betting import Bets, betting_sequence
from fairtrial.stats.bounded import share_above
from fairtrial.stats.correction import why_uncorrectable, wilson
from fairtrial.stats.distributions import beta_inc
from fairtrial.stats.planning import cases_for_interval_rule, chance_to_pass, chance_within, smallest_detectable
from fairtrial.stats.sequence import confidence_sequence
from tests.lazily import Library

reference = Library("scipy.stats")

D = [0.2, 0.1, 0.4, -0.1, 0.3, 0.0, 0.25, 0.5, -0.2, 0.1]
CLUSTERS = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
PAIRS = {"bounds": (-1.0, 1.0), "span": 1.0}
HEAVY = [1, 2, 3, 4, 10]


def by_t(mean):
    half = reference.t.ppf(0.975, mean.freedom) * mean.std_err
    return mean.mean - half, mean.mean + half


@pytest.mark.parametrize(
    ("values", "weights", "clusters", "mean", "error", "freedom", "low", "high"),
    [
        (D, None, CLUSTERS, 0.155, 0.023240, 1.824171, 0.045176, 0.264824),
        (D[:5], HEAVY, None, 0.21, 0.110924, 1.896966, -0.292990, 0.712990),
        (D[:5], None, None, 0.18, 0.086023, 4, -0.058839, 0.418839),
        (D, [1, 1, 1, 1, 1, 2, 2, 1, 3, 0.5], CLUSTERS, 0.1, 0.061819, 2.130995, -0.150915, 0.350915),
    ],
)
def test_clusters_and_weights(values, weights, clusters, mean, error, freedom, low, high):
    found = Mean(values, weights, clusters)
    assert (found.mean, found.std_err, found.freedom) == pytest.approx((mean, error, freedom), abs=1e-6)
    assert by_t(found) == pytest.approx((low, high), abs=1e-6)
    assert found.interval() == pytest.approx((low, high), abs=1e-6)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0.2, 5)), min_size=3, max_size=25))
def test_weighted_standard_errors_equal_statsmodels(rows):
    import statsmodels.api as sm

    values, weights = np.asarray(rows).T
    n = len(values)
    fitted = sm.WLS(values, np.ones(n), weights=weights).fit().get_robustcov_results("HC3")
    found = Mean(values, weights)
    if np.ptp(values) > 1e-6:
        assert found.std_err == pytest.approx(float(fitted.bse[0]) * ((n - 1) / n) ** 0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "weights", "keys", "low", "high"),
    [
        ([0.0] * 5, None, PAIRS, -0.521824, 0.521824),
        ([0.02] * 20, None, PAIRS, -0.151802, 0.185065),
        ([0.3], None, PAIRS, -0.967500, 0.982500),
        ([0.05] * 19 + [-0.95], None, PAIRS, -0.205026, 0.181090),
        ([1.0] * 3 + [0.0] * 17, None, {"bounds": (0.0, 1.0)}, 0.032071, 0.378927),
        (D[:5], HEAVY, PAIRS, -0.639282, 0.766944),
    ],
)
def test_bounded_by_the_scale(values, weights, keys, low, high):
    found = Mean(values, weights, **keys)
    found.unseen = 1.0  # as wherever weights say nothing about values
    assert found.bounded_interval() == pytest.approx((low, high), abs=1e-6)


TEN = [0.05, 0.15, 0.1, 0.08, 0.12, 0.11, 0.09, 0.1, 0.13, 0.07]
SOME = [1.0] * 30 + [-1.0] * 15 + [0.0] * 55
FEW = [1.0] * 12 + [0.0] * 88


@pytest.mark.parametrize(
    ("d", "mean", "by_t", "by_scale", "method", "p"),
    [
        (SOME, 0.15, 0.024590, 0.017849, "t", 0.024590),
        (FEW, 0.12, 0.000387, 0.000244, "bounded", 0.000387),
        ([0.02] * 20, 0.02, 0, 0.672971, "bounded", 0.672971),
        (TEN, 0.1, 2e-6, 0.386789, "bounded", 0.386789),
        ([0.05] * 19 + [-0.95], 0, 1, 0.744961, "bounded", 1),
    ],
)
def test_two_intervals_must_agree(d, mean, by_t, by_scale, method, p):
    found = Mean(d, **PAIRS)
    assert (found.mean, found.method, found.p_value()) == (
        pytest.approx(mean, abs=1e-12),
        method,
        pytest.approx(p, abs=1e-6),
    )
    assert 1 - share_above(*found.with_unseen(-1.0), 0.0) == pytest.approx(by_scale, abs=1e-6)
    if found.std_err:
        assert Mean(d).p_value() == pytest.approx(by_t, abs=1e-6)


@pytest.mark.parametrize(
    ("d", "level", "share"),
    [(FEW, 0.05, 0.05), (FEW, 0.01, 0.01), (SOME, 0.05, 0.15), (SOME, 0.01, 0.05), ([0.3, 0.2] * 20, 0.02, 0.02)],
)
def test_the_interval_is_the_hull_of_both(d, level, share):
    found = Mean(d, **PAIRS)
    low, high = Mean(d).interval(level)
    scale = [found._bounded_limit(share, side) for side in (-1, 1)]
    assert found.interval(level) == pytest.approx((min(low, scale[0]), max(high, scale[1])), abs=1e-6)


def test_each_limit_of_a_gate_is_a_claim_of_its_own():
    for d in (FEW, SOME, TEN, [0.02] * 20):
        both, each = Mean(d, **PAIRS), Mean(d, **PAIRS, one_sided=True)
        assert each.interval()[0] <= both.interval()[0] and each.interval()[1] >= both.interval()[1]
        assert each.p_value() >= both.p_value()
    assert Mean([0.02] * 20, **PAIRS, one_sided=True).interval() == pytest.approx((-0.151802, 0.185065), abs=1e-6)
    assert Mean(SOME, **PAIRS, one_sided=True).interval() == Mean(SOME, **PAIRS).interval()


def test_weights_that_say_something_about_values():
    """A case that nobody has seen may then weigh as much as the heaviest."""
    told, untold = Mean([0.1, 0.2, 0.3, 0.4, 0.5], HEAVY, **PAIRS), Mean([0.3, 0.1, 0.5, 0.2, 0.3], HEAVY, **PAIRS)
    assert told.telling and not untold.telling and untold.unseen == 1
    assert told.unseen == pytest.approx(told.effective * 0.5)
    assert not Mean([0.1, 0.2, 0.3], [2, 2, 2], **PAIRS).telling


def test_the_rule_chooses():
    few = Mean(FEW, **PAIRS)
    assert few.skew == pytest.approx(0.233874, abs=1e-6) and few.method == "bounded"
    assert few.interval() == pytest.approx((0.055196, 0.187166), abs=1e-6)
    many = Mean(SOME, **PAIRS)
    assert many.method == "t" and many.interval() == pytest.approx((0.019611, 0.280389), abs=1e-6)
    assert many.p_value() == pytest.approx(0.024590, abs=1e-6)
    assert Mean([0.5] * 30, **PAIRS).method == "bounded"
    assert Mean([0.1, 0.9, 0.4]).method == "t" and Mean([3.0, 3.0]).method == "nothing varies"
    assert Mean([100.0, *([1.0] * 50)]).rough  # no scale says what others could be


@pytest.mark.slow
@given(st.integers(1, 60), st.integers(0, 60))
def test_wins_and_losses_are_mcnemar(n, wins):
    wins = min(wins, n)
    found = Mean([1.0] * wins + [-1.0] * (n - wins) + [0.0] * 3, **PAIRS)
    above = share_above(*found.with_unseen(-1.0), 0.0), 1 - share_above(*found.with_unseen(1.0), 0.0)
    p = min(1.0, 2 * min(1 - above[0], 1 - above[1]))
    assert p == pytest.approx(reference.binomtest(wins, n).pvalue, abs=1e-8)


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0, 0.05])), min_size=2, max_size=30),
    st.floats(0.001, 0.3),
    st.integers(0, 2**31),
)
@settings(max_examples=100)
def test_interval_and_p_never_contradict_each_other(values, alpha, seed):
    rng = np.random.default_rng(seed)
    weights = rng.choice([None, 1]) and rng.lognormal(0, 1, len(values))
    clusters = rng.integers(0, 6, len(values)) if rng.random() < 0.5 else None
    found = Mean(values, weights, clusters, **PAIRS)
    interval = found.interval(alpha)
    if interval is None:
        return
    assert interval[0] - 1e-9 <= found.mean <= interval[1] + 1e-9
    assert -1 <= interval[0] <= interval[1] <= 1
    for point in (0.0, float(rng.uniform(-1, 1))):
        p = found.p_value(point)
        inside = interval[0] <= point <= interval[1]
        assert abs(p - alpha) < 1e-6 or (p > alpha) == inside
    margin = float(rng.uniform(0.01, 1))
    p = found.p_within(margin)
    assert abs(p - alpha) < 1e-6 or (p < alpha) == (-margin < interval[0] and interval[1] < margin)
    wider = found.interval(alpha / 3)
    assert wider[0] <= interval[0] + 1e-9 and wider[1] >= interval[1] - 1e-9


@pytest.mark.slow
def test_bounded_against_draws():
    """The integral is the distribution of Dirichlet weights."""
    rng = np.random.default_rng(1)
    values, weights = rng.uniform(-1, 1, 9), rng.lognormal(0, 1, 9)
    found = Mean(values, weights, **PAIRS)
    shapes = np.append(found.effective * weights / weights.sum(), 1.0)
    draws = rng.dirichlet(shapes, 400_000) @ np.append(values, 1.0)
    assert found.bounded_interval()[1] == pytest.approx(np.quantile(draws, 0.975), abs=0.004)


@pytest.mark.parametrize("n", [5_000, 50_000])
def test_many_units_are_as_exact_as_few(n):
    """A fixed grid over an integrand that oscillates gave [-1, 1] from some thousands of cases on."""
    found = Mean(0.2 + 0.05 * (np.arange(n) % 400 == 0), **PAIRS)
    assert found.method == "bounded" and found.p_value() == pytest.approx(0, abs=1e-12)
    for alpha in (0.05, 0.05 / 190):
        low, high = found.interval(alpha)
        assert 0.19 < low < found.mean < high < 0.21
    rare = Mean([0.9] * (n - 2) + [0.5] * 2, bounds=(0.0, 1.0)).bounded_interval()
    assert 0.89 < rare[0] < rare[1] < 0.901


@pytest.mark.slow
@given(st.integers(3, 400), st.floats(0.02, 0.98), st.integers(0, 2**31))
@settings(max_examples=40)
def test_the_line_integral_equals_the_beta_distribution(n, share, seed):
    """Split into two groups by a hair, a two-valued sample must give what Clopper and Pearson give."""
    right = np.random.default_rng(seed).random(n) < share
    exact = Mean(right * 1.0, bounds=(0.0, 1.0)).bounded_interval()
    split = Mean(np.where(right, 1.0, 0.0) - 1e-9 * (np.arange(n) % 2), bounds=(-1e-9, 1.0)).bounded_interval()
    assert split == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("tiny", [5e-324, 1e-308, 1e-200, 1e-162, 1e-17])
def test_values_next_to_nothing(tiny):
    """The width of such values, squared, is 0: the search for a limit never came to an end."""
    for values in ([0.0, tiny, 0.0], [tiny] * 3, [0.0, tiny, 2 * tiny]):
        low, high = aggregate(values).ci95
        assert 0 <= low <= tiny and high == pytest.approx(0.6315969, abs=1e-6)


def test_one_unit_with_all_the_weight_says_nothing():
    assert Mean([0.2, 0.5, 0.9, 0.4], [1e12, 1, 1, 2]).interval() is None
    assert Mean([0.2, 0.5, 0.9], [1e5, 1, 2], bounds=(0.0, 1.0)).freedom > 0


def test_a_declared_largest_difference_buys_power():
    a, b = np.full(30, 0.52), np.full(30, 0.5)
    wide, narrow = (mean_difference(a, b, most=most).interval() for most in (None, 0.1))
    assert narrow[0] > -0.02 and wide[0] < -0.05
    with pytest.raises(ValueError, match=r"more than the stated largest difference of 0\.01"):
        mean_difference(a, b, most=0.01)


class TestMany:
    def test_levels(self):
        found = holm_levels([0.001, 0.004, 0.012, 0.03, 0.2, 0.6])
        assert found == pytest.approx([0.05 / 6, 0.01, 0.0125, 0.05 / 3, 0.05 / 3, 0.05 / 3])

    @pytest.mark.slow
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
    def test_levels_and_adjusted_p_values_agree(self, p):
        for value, level, adjusted in zip(p, holm_levels(p), holm(p), strict=True):
            assert (value < level) == (adjusted < 0.05) or abs(adjusted - 0.05) < 1e-9


class TestLabels:
    @pytest.mark.parametrize(
        ("table", "passes", "count", "mean", "low", "high"),
        [
            ((21, 1, 0, 8), 730, 1000, 0.697477, 0.599545, 0.772168),
            ((60, 4, 6, 30), 640, 1000, 0.658936, 0.595669, 0.720366),
            ((20, 0, 0, 10), 3300, 5000, 0.659777, 0.595407, 0.721429),
        ],
    )
    def test_right_or_wrong(self, table, passes, count, mean, low, high):
        found = corrected_share(*labelled(table), [1] * passes + [0] * (count - passes))
        assert (found.mean, *found.ci95) == pytest.approx((mean, low, high), abs=1e-6)

    def test_labels_from_elsewhere(self):
        found = lang_reiczigel(*labelled((21, 1, 0, 8)), [1] * 730 + [0] * 270)
        assert (found.mean, *found.ci95) == pytest.approx((0.706466, 0.565391, 0.806172), abs=1e-6)

    def test_marks_and_pairs(self):
        y = [1, 1, 0.5, 0, 0.75, 1, 0.25, 0.5, 1, 0.75] * 3
        same = LabelledMean(y, y, spread(0.7, 0.09, 1000))
        assert (same.tuning, same.mean, *same.interval()) == pytest.approx(
            (0.970874, 0.699272, 0.627211, 0.771333), abs=1e-6
        )
        f = list(y)
        for place, value in ((3, 0.5), (7, 0.75), (12, 0.75), (20, 0.25), (28, 0.75)):
            f[place] = value
        off = LabelledMean(y, f, spread(0.7, 0.09, 1000))
        assert (off.tuning, off.mean, *off.interval()) == pytest.approx(
            (0.886997, 0.697175, 0.597934, 0.796416), abs=1e-6
        )
        y = [1, 0, 0, -1, 0, 0, 1, 0, 0, 0] * 3
        f = [1 if place in (1, 12, 25) else value for place, value in enumerate(y)]
        pair = LabelledMean(y, f, spread(0.12, 0.2, 800))
        assert (pair.tuning, pair.mean, *pair.interval()) == pytest.approx(
            (0.749665, 0.040027, -0.086082, 0.166135), abs=1e-6
        )

    def test_fewer_than_twenty_labels_correct_nothing(self):
        y = [1.0, 0.0] * 9
        for kernel in (corrected_mean, corrected_share):
            assert "at least 20 labels" in kernel(y, y, [1.0, 0.0] * 50).refused

    @pytest.mark.slow
    @pytest.mark.parametrize("unlabelled", [200, 1000, 5000])
    def test_a_judge_that_hardly_errs_is_not_believed_to_be_perfect(self, unlabelled):
        """Sensitivity 1, specificity 0.9, 30 labels: PPI++ and Rogan–Gladen covered 91 to 60 %."""
        rng = np.random.default_rng(unlabelled)
        hits = {"share": 0, "mean": 0}
        for _ in range(400):
            y = rng.random(unlabelled + 30) < 0.7
            f = y | (rng.random(len(y)) < 0.1)
            args = (y[:30].astype(float), f[:30].astype(float), f[30:].astype(float))
            for name, kernel in (("share", corrected_share), ("mean", corrected_mean)):
                low, high = kernel(*args).ci95
                hits[name] += low <= 0.7 <= high
        assert min(hits.values()) / 400 >= 0.93


def labelled(table):
    a, b, c, d = table
    return [1] * a + [0] * b + [1] * c + [0] * d, [1] * (a + b) + [0] * (c + d)


def spread(mean, variance, count):
    """Values with exactly this mean and variance."""
    off = (variance * (count - 1) / count) ** 0.5
    return np.r_[np.full(count // 2, mean - off), np.full(count // 2, mean + off)]


class TestRatings:
    def test_gaps(self):
        prompts = [(1, 1, 0.5), (1, 0, 0), (0, 1, 1), (1, 1, 0), (0.5, 1, 1), (0, 0.5, 1)]
        rows = [
            (i, j, worth, number)
            for number, said in enumerate(prompts)
            for (i, j), worth in zip(((0, 1), (0, 2), (1, 2)), said, strict=True)
        ]
        one, other, worth, where = zip(*rows, strict=True)
        found = bradley_terry(one, other, worth, prompts=where, prior=0.0)
        strengths = (np.asarray(found.ratings) - 1000) * np.log(10) / 400
        assert strengths == pytest.approx([0.468206, 0, -0.468206], abs=1e-5)
        # By leaving out prompts alone the second error is 0.683784: less than the model's own, which counts then.
        assert [gap.std_err for gap in found.gaps] == pytest.approx([0.825351, 0.720894, 0.990680], abs=3e-6)
        assert [gap.p_value for gap in found.gaps] == pytest.approx([0.595044, 0.250631, 0.656401], abs=3e-6)

    def test_only_ties_tell_little(self):
        found = bradley_terry([0] * 30, [1] * 30, [0.5] * 30, prompts=range(30))
        assert found.ratings == pytest.approx((1000, 1000))
        assert found.intervals[0] == pytest.approx((935, 1065), abs=1)
        assert found.gaps[0].p_value == pytest.approx(1.0)

    def test_who_was_never_compared_is_said(self):
        found = bradley_terry([0, 0, 2, 2] * 10, [1, 1, 3, 3] * 10, [1, 0] * 20, prompts=range(40))
        assert found.groups[0] == found.groups[1] != found.groups[2] == found.groups[3]
        assert [gap.p_value is None for gap in found.gaps] == [False, True, True, True, True, False]

    @pytest.mark.slow
    def test_equal_players_are_told_apart_rarely(self):
        """Eight equal players, ten prompts: a bootstrap was wrong in 30 % of samples."""
        rng = np.random.default_rng(3)
        pairs = [(i, j) for i in range(8) for j in range(i)]
        wrong = 0
        for _ in range(60):
            rows = [(i, j, float(rng.random() < 0.5), prompt) for prompt in range(10) for i, j in pairs]
            one, other, worth, prompts = zip(*rows, strict=True)
            found = bradley_terry(one, other, worth, prompts=prompts)
            wrong += min(holm([gap.p_value for gap in found.gaps])) < 0.05
        assert wrong <= 8


class TestStopping:
    def test_the_asymptotic_sequence(self):
        for n, half in ((50, 0.174433), (100, 0.121408)):
            d = np.r_[np.full(n // 2, 0.4), np.full(n // 2, -0.4)] * ((n - 1) / n) ** 0.5
            assert confidence_sequence(d).interval[1] == pytest.approx(half, abs=1e-6)

    @pytest.mark.slow
    def test_limits_are_never_rounded_onto_what_is_ruled_out(self):
        rng = np.random.default_rng(4)
        touched = 0
        for _ in range(60):
            bets = Bets(points=(0.05, -0.05))
            for value in rng.choice([-1.0, 0.0, 1.0], 300, p=[0.1, 0.6, 0.3]):
                bets.add(float(value))
                low, high = bets.interval()
                touched += 0.0 in (low, high)
                assert (bets.p_above() < 0.05) == (low > 0) and (bets.p_below() < 0.05) == (high < 0)
        assert not touched

    def test_the_middle_is_shown(self):
        found = betting_sequence([0.5, 0.2, 0.9] * 10, bounds=(0.0, 1.0))
        assert (
            found.middle == pytest.approx(sum(found.interval) / 2) and 0 <= found.interval[0] < found.interval[1] <= 1
        )


class TestPasses:
    def test_cases(self):
        assert pass_at_k([3], [5], 2) == pytest.approx([0.9]) and pass_hat_k([3], [5], 2) == pytest.approx([0.3])
        assert pass_at_k([9], [10], 3) == pytest.approx([1.0]) and pass_hat_k([9], [10], 3) == pytest.approx([0.7])
        assert np.isnan(pass_at_k([1], [2], 3)).all()

    def test_intervals_over_cases(self):
        right, tries = [5, 4, 3, 5, 0, 2, 5, 1, 5, 5], [5] * 10
        once, always = (Mean(kind(right, tries, 2), bounds=(0.0, 1.0)) for kind in (pass_at_k, pass_hat_k))
        assert (once.mean, *once.interval()) == pytest.approx((0.8, 0.524247, 1.0), abs=1e-6)
        assert (always.mean, *always.interval()) == pytest.approx((0.6, 0.274794, 0.925206), abs=1e-6)

    @given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 8))
    def test_equal_to_counting(self, n, right, k):
        from itertools import combinations

        right, k = min(right, n), min(k, n)
        draws = list(combinations([True] * right + [False] * (n - right), k))
        assert pass_at_k([right], [n], k)[0] == pytest.approx(np.mean([any(draw) for draw in draws]))
        assert pass_hat_k([right], [n], k)[0] == pytest.approx(np.mean([all(draw) for draw in draws]))


class TestPlanning:
    def test_values(self):
        assert chance_to_see(20, 0.3) == pytest.approx(0.247089, abs=1e-6)
        assert chance_to_see(10, 1.0) == pytest.approx(0.803097, abs=1e-6)
        found = [detectable(1, n) for n in (5, 10, 20, 50)]
        assert found == pytest.approx([1.681997, 0.996001, 0.660442, 0.404183], abs=1e-6)
        assert power(1, 0.3) == 90
        assert [chance_to_see(90, 0.3, pilot=m) for m in (10, 20)] == pytest.approx([0.741327, 0.771719], abs=1e-6)

    @pytest.mark.slow
    @given(st.integers(2, 300), st.floats(0.01, 1.5), st.floats(0.001, 0.2))
    @settings(max_examples=60)
    def test_equal_to_the_noncentral_t(self, n, delta, alpha):
        limit, off = reference.t.ppf(1 - alpha / 2, n - 1), delta * n**0.5
        expected = reference.nct.sf(limit, n - 1, off) + reference.nct.cdf(-limit, n - 1, off)
        if np.isfinite(expected):
            assert chance_to_see(n, delta, alpha=alpha) == pytest.approx(expected, abs=1e-6)

    def test_equivalence_and_gate(self):
        rng = np.random.default_rng(5)
        d = rng.normal(0, 1, (20_000, 40))
        half = reference.t.ppf(0.975, 39) * d.std(axis=1, ddof=1) / 40**0.5
        inside = np.mean((d.mean(axis=1) - half > -0.5) & (d.mean(axis=1) + half < 0.5))
        assert chance_within(40, 0.5) == pytest.approx(inside, abs=0.01)
        assert chance_to_pass(40, 0.5) == pytest.approx(np.mean(d.mean(axis=1) - half > -0.5), abs=0.01)
        off = np.mean((d.mean(axis=1) + 0.2 - half > -0.5) & (d.mean(axis=1) + 0.2 + half < 0.5))
        assert chance_within(40, 0.5, delta=0.2) == pytest.approx(off, abs=0.01)
        assert chance_within(40, 0.5, delta=0.2) == pytest.approx(chance_within(40, 0.5, delta=-0.2))
        need = cases_for_equivalence(1.0, 0.5)
        assert chance_within(need, 0.5) >= 0.8 > chance_within(need - 1, 0.5)
        assert cases_for_gate(1.0, 0.5) < need < cases_for_equivalence(1.0, 0.5, pilot=8)


def test_control_variates():
    x = [0.1, 0.4, -0.2, 0.3, 0, 0.5, -0.1, 0.2, 0.3, 0.1, -0.3, 0.2, 0, 0.4, 0.1, -0.2]
    d = [0.15, 0.35, -0.1, 0.2, 0.05, 0.45, 0, 0.1]
    found = ControlledMean(d, x[:8], x)
    assert (found.slope, found.mean, found.std_err) == pytest.approx((0.714286, 0.123214, 0.045911), abs=1e-6)
    assert found.interval() == pytest.approx((0.010875, 0.235553), abs=1e-6)
    with pytest.raises(ValueError, match="more cases"):
        ControlledMean(d, x[:8], x[:8])


def test_earlier_scores_that_never_vary_control_nothing():
    d = [0.1, 0.5, 0.2, 0.4]
    found = ControlledMean(d, [0.5] * 4, [0.5, 0.5, 0.5, 0.5, 0.9])
    assert found.slope == 0 and found.mean == pytest.approx(np.mean(d)) and found.saved == 0


@pytest.mark.parametrize(("passed", "count"), [(0, 5), (3, 8), (12, 40), (99, 100)])
def test_wilson_equals_scipy(passed, count):
    expected = reference.binomtest(passed, count).proportion_ci(method="wilson")
    assert wilson(passed / count, count) == pytest.approx(tuple(expected))


def test_labels_of_one_value_may_stand_for_others_only_if_chance_allows():
    """Twenty answers with full marks were drawn: one other among fifty may have been missed, but not half of them."""
    labels = [1.0] * 19 + [0.0]
    assert corrected_mean(labels, [1.0] * 20, [1.0] * 49 + [0.5]).mean is not None
    assert why_uncorrectable(np.ones(20), np.ones(20), np.ones(50)) == ""
    assert "judged outside the labelled range" in corrected_mean(labels, [1.0] * 20, [1.0] * 25 + [0.5] * 25).refused


def test_all_of_a_beta_variable_lies_from_0_to_1():
    assert [beta_inc(2, 3, x) for x in (-0.5, 0.0, 1.0, 1.5)] == [0, 0, 1, 1]


class TestEnoughCases:
    """The interval that will be used may need more cases than the formula for t says."""

    def test_samples_have_the_expected_spread_and_a_small_one(self):
        seen = []
        assert cases_for_interval_rule(50, 0.05, lambda n: 0.0, lambda mean: seen.append(mean) or True) == 50
        spreads = [mean.std_err * 50**0.5 for mean in seen]
        assert spreads == pytest.approx([0.05, 0.05 * (1 - 1.645 / 10)], rel=1e-6)

    def test_cases_are_added_until_there_are_enough(self):
        assert 30 <= cases_for_interval_rule(10, 0.05, lambda n: 0.0, lambda mean: mean.count >= 30) <= 36
        assert cases_for_interval_rule(10, 0.7, lambda n: 0.0, lambda mean: False) == 10  # t needs no more

    def test_what_a_repeat_would_detect(self):
        values = np.random.default_rng(3).uniform(-1, 1, 50)
        mean = Mean(values, bounds=(-1.0, 1.0), span=1.0)
        assert mean.method == "t"
        smallest = detectable(float(np.std(values, ddof=1)), 50)
        assert smallest < smallest_detectable(mean) < 1.03 * smallest  # the spread is known from 50 cases only

    def test_no_number_of_cases_shows_nothing(self):
        with pytest.raises(ValueError, match="difference of 0"):
            power(0.5, 0.0)
        assert power(0.5, 1.0) < power(0.5, 0.5)


def test_the_stakes_are_those_of_the_paper():
    """Waudby-Smith and Ramdas: the stake follows the variance so far; a bet never risks more than a part."""
    values, alpha, up = np.random.default_rng(4).uniform(-0.8, 1, 80), 0.05, 0.0
    best, total, squares = 0.0, 0.5, 0.25
    for t, d in enumerate(values, start=1):
        x = (d + 1) / 2
        stake = np.sqrt(2 * np.log(2 / alpha) / (squares / t * t * np.log(1 + t)))
        up += np.log1p(min(stake, 0.75 / 0.5) * (x - 0.5))
        best = max(best, up)
        squares += (x - total / t) ** 2
        total += x
    assert 0 < betting_sequence(values, alpha=alpha).p_above < 1 and stake < 1
    assert betting_sequence(values, alpha=alpha).p_above == pytest.approx(2 * np.exp(-best))


def test_one_value_proves_no_equivalence():
    assert Mean([0.05], bounds=(-1.0, 1.0), span=1.0).p_within(0.5) is None
    assert Mean([], bounds=(-1.0, 1.0), span=1.0).p_within(0.5) is None
