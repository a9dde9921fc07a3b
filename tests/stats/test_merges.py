"""Made-up merges: the noise is right on average, and a gate decides about them as theory says."""

import numpy as np
import pytest

from fairtrial.stats.merges import chances, noise_of, smallest_caught
from fairtrial.stats.planning import chance_to_pass


def noise_in(scores, clusters=None):
    """The noise of cases with these scores, each of weight 1."""
    counts, sums, squares = (np.array([sum(s**power for s in own) for own in scores]) for power in (0, 1, 2))
    codes = None if clusters is None else np.array(clusters)
    return noise_of(counts.astype(int), sums.astype(float), squares.astype(float), np.ones(len(scores)), codes)


def noisy(cases, sd, repeats=3, seed=0, mean=0.5):
    """Cases whose scores vary normally around one mean."""
    rng = np.random.default_rng(seed)
    return noise_in((mean + sd * rng.standard_normal((cases, repeats))).tolist())


def test_noise_is_unbiased_however_few_the_answers():
    for repeats in (2, 3, 10):
        assert noisy(4000, 0.1, repeats).sd == pytest.approx(0.1, rel=0.03)


def test_a_case_with_one_answer_has_the_noise_of_the_others():
    assert noise_in([[1.0], [0.0]]) is None
    assert noise_in([[0.0, 1.0], [1.0], [0.0, 1.0]]).sd == pytest.approx(np.sqrt(0.5))
    assert noise_in([[0.1] * 3, [0.7] * 3]).sd == 0  # not the rounding of sums


@pytest.mark.simulation
def test_an_unchanged_merge_passes_as_often_as_theory_says():
    noise = noisy(100, 0.2)
    found = chances(noise, 0.0, margin=0.05, repeats=3, before=3, merges=600)
    expected = chance_to_pass(100, 0.05, sd=noise.sd * np.sqrt(2 / 3))
    assert found.passed == pytest.approx(expected, abs=0.06)
    assert found.failed < 0.05
    assert found.passed + found.failed + found.unsure == pytest.approx(1)
    assert 0 <= found.flips <= 2 / 3


def test_without_noise_cases_alone_decide():
    # A margin of 5 points is ruled out by 72 equal cases: 1 − 0.025^(1/72) < 0.05.
    enough, too_few = (noise_in([[1.0, 1.0]] * cases) for cases in (72, 71))
    terms = {"margin": 0.05, "repeats": 2, "before": 2, "merges": 5}
    assert chances(enough, 0.0, **terms).passed == 1
    assert chances(too_few, 0.0, **terms).unsure == 1
    assert chances(enough, 1.0, **terms).failed == 1


@pytest.mark.slow
def test_the_smallest_loss_that_is_caught():
    noise = noise_in([[1.0, 1.0]] * 100)
    terms = {"margin": 0.05, "repeats": 2, "before": 2}
    caught = smallest_caught(noise, **terms)
    assert chances(noise, caught, **terms).failed == pytest.approx(0.8, abs=0.08)
    assert smallest_caught(noise_in([[0.0, 0.0]] * 9), **terms) is None  # there is nothing to lose


def test_clusters_are_drawn_as_a_whole():
    noise = noise_in([[0.0, 1.0]] * 6, [0, 0, 0, 1, 1, 2])
    drawn = noise.resampled(np.random.default_rng(3))
    sizes = sorted(np.bincount(drawn.clusters))
    assert len(sizes) == 3 and set(sizes) <= {1, 2, 3}
