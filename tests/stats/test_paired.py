"""Kernels of comparison, held against scipy, statsmodels and simulation."""

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.stats import (
    bootstrap_ci,
    bradley_terry,
    confidence_sequence,
    detectable,
    effect_words,
    elo,
    equivalence,
    holm,
    mcnemar,
    multi_run,
    paired,
    power,
    ratings,
    run_means_test,
    sign_flip,
    superiority,
    variance_components,
    wilcoxon,
)
from fairtrial.stats.variance import Components
from tests.lazily import Library

reference = Library("scipy.stats")

RUNS = st.lists(st.floats(0, 1), min_size=2, max_size=10)


@pytest.mark.slow
@given(RUNS, RUNS)
def test_run_means_equal_scipy(a, b):
    found = run_means_test(a, b)
    if found.pooled_std_err < 1e-9:
        return
    expected = reference.ttest_ind(a, b)
    assert found.t_statistic == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-6)


def test_run_means_without_variation():
    same = run_means_test([0.5, 0.5], [0.5, 0.5])
    assert (same.p_value, same.is_significant, same.effect) == (1.0, False, "negligible")
    other = run_means_test([0.6, 0.6], [0.5, 0.5])
    assert (other.t_statistic, other.p_value) == (float("inf"), 0.0) and "cannot be estimated" in other.note
    assert run_means_test([0.5], [0.4, 0.5]) is None


def test_multi_run():
    found = multi_run([0.8, 0.85, 0.9])
    low, high = reference.t.interval(0.95, 2, loc=0.85, scale=reference.sem([0.8, 0.85, 0.9]))
    assert found.ci95 == pytest.approx((low, high)) and found.std_dev == pytest.approx(0.05)
    assert multi_run([0.8]).ci95 is None


@pytest.mark.parametrize(("d", "word"), [(0.1, "negligible"), (-0.3, "small"), (0.5, "medium"), (-0.8, "large")])
def test_effect_words(d, word):
    assert effect_words(d) == word


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=20)
def test_holm_equals_statsmodels(p):
    from statsmodels.stats.multitest import multipletests

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gc.collect", lambda *_: 0)  # the reference collects garbage at every call, for half a second
        reference = list(multipletests(p, method="holm")[1])
    assert holm(p) == pytest.approx(reference, abs=1e-12)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_mcnemar_equals_statsmodels(pairs):
    from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar

    a, b = np.asarray(pairs).T
    found = mcnemar(a, b)
    expected = reference_mcnemar([[0, found.only_a], [found.only_b, 0]], exact=True).pvalue
    assert found.p_value == pytest.approx(expected, abs=1e-9)


def test_equivalence_equals_statsmodels():
    """Where t holds it is the two one-sided tests, each at 2.5 %: the 95 % interval lies inside the margin."""
    from statsmodels.stats.weightstats import ttost_paired

    rng = np.random.default_rng(1)
    a, b = rng.uniform(0, 1, 60), rng.uniform(0, 1, 60)
    expected = ttost_paired(a, b, -0.2, 0.2)[0]
    found = equivalence(a - b, 0.2)
    assert found.p_value == pytest.approx(2 * expected, abs=1e-9)
    assert found.equivalent == (expected < 0.025)
    assert not equivalence(np.zeros(5), 0.45).equivalent and equivalence(np.zeros(5), 0.46).equivalent


@pytest.mark.parametrize("n", [5, 12, 30])
def test_sign_flips(n):
    d = np.random.default_rng(n).normal(0.3, 1, n)
    expected = reference.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
    assert sign_flip(d) == pytest.approx(expected, abs=1e-9 if n <= 12 else 0.02)


@pytest.mark.slow
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_wilcoxon_equals_scipy(d):
    if not any(d):
        assert wilcoxon(d) is None
        return
    values = np.asarray([value for value in d if value], dtype=float)
    if len(values) > 12:
        expected = reference.wilcoxon(d, method="asymptotic", correction=False).pvalue
    else:  # every way the signs could have fallen
        ranks = reference.rankdata(np.abs(values))
        signs = np.array(list(product([-1, 1], repeat=len(values))))
        expected = np.mean(np.abs(signs @ ranks) >= abs(np.sign(values) @ ranks) - 1e-9)
    assert wilcoxon(d) == pytest.approx(expected, abs=1e-9)
    if len(set(np.abs(values))) == len(values) <= 12:
        assert wilcoxon(d) == pytest.approx(reference.wilcoxon(values, method="exact").pvalue, abs=1e-9)


def test_random_signs_count_what_was_observed_among_them():
    """With 99 draws of which none is as extreme, 1 in 100 is."""
    many, few = np.arange(1.0, 41.0), np.repeat([1.0, 2.0], 20)
    assert sign_flip(many, resamples=99) == sign_flip(few, resamples=99) == 0.01


def test_superiority():
    assert superiority([0.5, 3, 0, 0, -1]) == pytest.approx(0.6)


@pytest.mark.slow
def test_power_and_detectable_are_each_other():
    assert power(0.3, 0.1) == 73
    assert detectable(0.3, 73) == pytest.approx(0.1, abs=1e-3)
    rng = np.random.default_rng(2)
    found = reference.ttest_1samp(rng.normal(0.1, 0.3, (2000, 73)), 0, axis=1).pvalue < 0.05
    assert 0.77 <= np.mean(found) <= 0.83


def test_variance_components():
    rng = np.random.default_rng(3)
    cube = 0.5 + rng.normal(0, 0.2, (2000, 1, 1)) + rng.normal(0, 0.1, (2000, 4, 1)) + rng.normal(0, 0.05, (2000, 4, 3))
    found = variance_components(cube)
    assert (found.case**0.5, found.repeat**0.5, found.judge**0.5) == pytest.approx((0.2, 0.1, 0.05), rel=0.05)
    assert found.mean_variance == pytest.approx(np.var(cube.mean(axis=(1, 2)), ddof=1) / 2000, rel=1e-9)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.best_repeats() == pytest.approx((0.1**2 + 0.05**2 / 3) ** 0.5 / 0.2, rel=0.05)
    assert variance_components(np.full((3, 2), 0.5)).shares == {"case": 0.0, "repeat": 0.0, "judge": None}


def test_variance_components_of_ragged_data():
    rng = np.random.default_rng(19)
    cube = 0.5 + rng.normal(0, 0.2, (3000, 1, 1)) + rng.normal(0, 0.1, (3000, 5, 1)) + rng.normal(0, 0.05, (3000, 5, 3))
    cube[rng.random((3000, 5)) < 0.3] = np.nan
    cube[rng.random((3000, 5, 3)) < 0.2] = np.nan
    found = variance_components(cube)
    assert (found.case**0.5, found.repeat**0.5, found.judge**0.5) == pytest.approx((0.2, 0.1, 0.05), rel=0.06)
    one = variance_components(cube[:, :1, :1])
    assert one.repeat is None and one.judge is None and one.shares == {"case": 1.0, "repeat": None, "judge": None}


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 200])
def test_sign_flips_in_both_ways(n):
    """Few sizes are counted, many are drawn: the same distribution."""
    rng = np.random.default_rng(n)
    d = rng.choice([-1.0, 0.0, 1.0], n, p=[0.2, 0.5, 0.3])
    expected = reference.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1).pvalue
    assert sign_flip(d) == pytest.approx(expected, abs=0.02)
    assert sign_flip(rng.normal(0, 1, n) + 2) < 0.001


class TestBootstrap:
    def test_close_to_scipy(self):
        values = np.random.default_rng(4).beta(2, 5, 60)
        expected = reference.bootstrap((values,), np.mean, n_resamples=20_000, rng=1).confidence_interval
        assert bootstrap_ci(values, expand=False).ci == pytest.approx((expected.low, expected.high), abs=0.004)

    @pytest.mark.slow
    def test_equal_to_arch_on_the_same_draws(self):
        from arch.bootstrap import IIDBootstrap

        from fairtrial.stats.bootstrap import _bca, _jackknife

        values = np.random.default_rng(15).beta(2, 5, 60)
        other = IIDBootstrap(values, seed=np.random.default_rng(16))
        expected = other.conf_int(np.mean, reps=5000, method="bca").ravel()
        found = _bca(other._results.ravel(), values.mean(), _jackknife(values, np.ones(60)), 0.95, expand=False)
        assert found == pytest.approx(tuple(expected), abs=1e-6)

    def test_counting_kinds_is_the_same_as_drawing_units(self):
        """0/1 scores take the quick way; a hair of noise makes them take the other."""
        rng = np.random.default_rng(17)
        values = (rng.random(400) < 0.3).astype(float)
        quick, slow = bootstrap_ci(values), bootstrap_ci(values + rng.normal(0, 1e-9, 400))
        assert quick.ci == pytest.approx(slow.ci, abs=0.004)

    def test_weights(self):
        rng = np.random.default_rng(18)
        values, weights = rng.random(200), rng.integers(1, 4, 200)
        found = bootstrap_ci(values, weights=weights)
        assert found.mean == pytest.approx(np.average(values, weights=weights))
        from fairtrial.stats import aggregate

        assert found.ci == pytest.approx(aggregate(values, weights).ci95, abs=0.006)

    @pytest.mark.simulation
    def test_coverage_with_clusters_and_repeats(self):
        rng = np.random.default_rng(5)
        hits = 0
        for number in range(400):
            effect = rng.normal(0, 0.1, 40).repeat(3)
            truth = 0.5 + effect + rng.normal(0, 0.1, 120)
            repeats = [rng.normal(mean, 0.1, 1 + n % 3) for n, mean in enumerate(truth)]
            found = bootstrap_ci(repeats, clusters=np.arange(40).repeat(3), resamples=1000, seed=number)
            hits += found.ci[0] <= 0.5 <= found.ci[1]
        assert 0.93 <= hits / 400 <= 0.97

    def test_two_units_have_an_interval_and_weight_0_counts_for_nothing(self):
        assert bootstrap_ci([0.2, 0.6]).ci is not None
        values = [0.1, 0.5, 0.9, 0.4]
        assert bootstrap_ci([*values, 9.0], weights=[1, 1, 1, 1, 0]) == bootstrap_ci(values, weights=[1, 1, 1, 1])

    def test_one_unit_has_no_interval(self):
        assert bootstrap_ci([0.5]).ci is None and bootstrap_ci([1, 2], clusters=[0, 0]).ci is None

    @pytest.mark.slow
    def test_it_is_quick(self):
        values = np.random.default_rng(6).random(3000)
        started = time.process_time()
        bootstrap_ci(values)
        assert time.process_time() - started < 60


class TestRatings:
    @pytest.mark.simulation
    def test_bradley_terry_recovers_strengths(self):
        rng = np.random.default_rng(7)
        theta = np.array([0.0, 0.5, 1.0, 1.5])
        one, other = rng.integers(0, 4, 40_000), rng.integers(0, 4, 40_000)
        keep = one != other
        one, other = one[keep], other[keep]
        worth = (rng.random(len(one)) < 1 / (1 + np.exp(theta[other] - theta[one]))).astype(float)
        found = np.asarray(bradley_terry(one, other, worth).ratings)
        assert np.diff(found) == pytest.approx([0.5 * 400 / np.log(10)] * 3, abs=10)
        assert found.mean() == pytest.approx(1000)

    def test_swapping_sides_changes_nothing(self):
        rng = np.random.default_rng(8)
        one, other, worth = rng.integers(0, 2, 200), rng.integers(2, 4, 200), rng.choice([0, 0.5, 1], 200)
        assert bradley_terry(one, other, worth).ratings == pytest.approx(
            bradley_terry(other, one, 1 - worth).ratings, abs=1e-6
        )

    def test_intervals_are_over_prompts(self):
        """The same prompt decides all its battles: more battles of the same prompts make nothing more certain."""
        rng = np.random.default_rng(9)
        prompts = np.arange(100)
        worth = (rng.random(100) < 0.6).astype(float)
        once = bradley_terry(np.zeros(100, int), np.ones(100, int), worth, prompts=prompts)
        often = bradley_terry(np.zeros(1000, int), np.ones(1000, int), worth.repeat(10), prompts=prompts.repeat(10))
        widths = [np.ptp(found.intervals[0]) for found in (once, often)]
        assert widths[1] == pytest.approx(widths[0], rel=0.1)

    def test_whoever_always_wins_has_a_rating(self):
        found = bradley_terry([0] * 20, [1] * 20, [1] * 20)
        assert np.isfinite(found.ratings).all() and found.ratings[0] > found.ratings[1]

    def test_elo_agrees_in_order(self):
        rng = np.random.default_rng(10)
        one, other = rng.integers(0, 3, 3000), rng.integers(0, 3, 3000)
        keep = one != other
        worth = (rng.random(3000) < 1 / (1 + np.exp(other - one))).astype(float)
        found = elo(one[keep], other[keep], worth[keep])
        assert np.argsort(found.ratings).tolist() == [0, 1, 2] and np.mean(found.ratings) == pytest.approx(1000)

    def test_equal_to_evalica(self):
        import evalica

        rng = np.random.default_rng(13)
        one = rng.integers(0, 4, 500)
        other = (one + rng.integers(1, 4, 500)) % 4
        worth = rng.choice([0.0, 0.5, 1.0], 500)
        winners = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
        battles = ([str(n) for n in one], [str(n) for n in other], [winners[w] for w in worth])
        expected = np.log(evalica.bradley_terry(*battles, tolerance=1e-13, limit=100_000).scores.sort_index())
        strengths = (np.asarray(bradley_terry(one, other, worth).ratings) - 1000) * np.log(10) / 400
        assert strengths == pytest.approx(np.asarray(expected - expected.mean()), abs=1e-6)
        expected = evalica.elo(*battles, k=32.0).scores.sort_index()
        assert elo(one, other, worth, orders=1).ratings == pytest.approx(list(expected), abs=1e-6)

    @pytest.mark.slow
    def test_elo_of_a_million_battles(self, monkeypatch):
        """Only the last ones are gone through: it takes no more than a moment, where all would take half a minute."""
        monkeypatch.setattr(ratings, "_REMEMBERED", 2000)
        rng = np.random.default_rng(14)
        one = rng.integers(0, 5, 1_000_000)
        other = (one + rng.integers(1, 5, 1_000_000)) % 5
        started = time.process_time()
        elo(one, other, rng.choice([0.0, 0.5, 1.0], 1_000_000))
        assert time.process_time() - started < 10

    @pytest.mark.slow
    def test_a_million_battles(self):
        rng = np.random.default_rng(11)
        one = rng.integers(0, 20, 1_000_000)
        other = (one + rng.integers(1, 20, 1_000_000)) % 20
        worth = rng.choice([0.0, 0.5, 1.0], 1_000_000)
        started = time.process_time()
        found = bradley_terry(one, other, worth, prompts=rng.integers(0, 5000, 1_000_000))
        assert len(found.intervals) == 20 and time.process_time() - started < 200


def test_the_sequence_holds_at_every_look():
    """1,000 runs of up to 1,000 differences with no effect, looked at after every one from the 50th on."""
    rng = np.random.default_rng(12)
    wrong = 0
    for _ in range(1000):
        d = rng.normal(0, 1, 1000)
        n = np.arange(1, 1001)
        means = np.cumsum(d) / n
        spread = np.sqrt(np.maximum(0, np.cumsum(d**2) - n * means**2) / np.maximum(1, n - 1))
        rho2 = (-2 * np.log(0.05) + np.log(-2 * np.log(0.05) + 1)) / 100
        half = spread * np.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * np.log(np.sqrt(n * rho2 + 1) / 0.05))
        wrong += bool(np.any(np.abs(means[49:]) > half[49:]))
    assert wrong / 1000 <= 0.05
    found = confidence_sequence(d)
    assert found.interval == pytest.approx((means[-1] - half[-1], means[-1] + half[-1]))
    assert confidence_sequence([0.1]).interval is None


def test_the_p_of_the_sequence_is_the_level_at_which_its_interval_touches_0():
    """ρ belongs to 5 %, so it is written out here, as in the paper."""
    d = np.random.default_rng(5).normal(0.4, 1, 60)
    found, n = confidence_sequence(d), 60
    rho2 = (-2 * np.log(0.05) + np.log(-2 * np.log(0.05) + 1)) / 100
    at_p = d.std(ddof=1) * np.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * np.log(np.sqrt(n * rho2 + 1) / found.p_value))
    assert 0 < found.p_value < 1 and at_p == pytest.approx(d.mean())
    assert confidence_sequence(d - d.mean()).p_value == 1


def test_the_spread_of_differences_is_that_of_a_sample():
    a, b = [1.0, 0.0, 0.5], [0.0, 0.0, 0.5]
    assert paired(a, b).std_dev == pytest.approx(np.std([1.0, 0.0, 0.0], ddof=1))
    assert paired(a[:2], b[:2]).std_dev == pytest.approx(np.std([1.0, 0.0], ddof=1))
    assert paired(a[:1], b[:1]).std_dev is None


def test_two_runs_of_each_arm_can_be_tested():
    assert run_means_test([0.1, 0.3], [0.2, 0.5, 0.4]) is not None and run_means_test([0.2, 0.5, 0.4], [0.1, 0.3])
    assert run_means_test([0.1], [0.2, 0.5]) is None and run_means_test([0.2, 0.5], [0.1]) is None


def test_what_is_unknown_adds_nothing_to_the_variance():
    known = Components(case=0.2, repeat=None, judge=None, cases=10, repeats=1, judgements=1, mean_variance=0.02)
    assert known.variance(cases=20, repeats=3, judgements=2) == pytest.approx(0.01)
    assert known.shares == {"case": 1.0, "repeat": None, "judge": None}
    still = Components(case=0.0, repeat=0.0, judge=0.0, cases=10, repeats=2, judgements=2, mean_variance=0.0)
    assert still.shares == {"case": 0.0, "repeat": 0.0, "judge": 0.0}
    all_three = Components(case=0.2, repeat=0.3, judge=0.4, cases=10, repeats=2, judgements=2, mean_variance=0.0)
    assert all_three.variance(cases=10, repeats=2, judgements=4) == pytest.approx((0.2 + (0.3 + 0.4 / 4) / 2) / 10)


def test_mcnemar_counts_the_cases_that_only_one_of_them_got_right():
    found = mcnemar([1, 1, 1, 0, 0], [1, 0, 0, 1, 0])
    assert (found.only_a, found.only_b) == (2, 1)
