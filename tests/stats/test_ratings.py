"""Bradley–Terry with covariates: against statsmodels, by simulation, and through the ranking."""

import numpy as np
import pytest

from fairtrial.analyse.battles import style_of
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import bradley_terry
from fairtrial.store.votes import Vote, add_vote
from tests.conftest import numbered


def battles(seed: int, count: int, strengths, effect: float):
    """Random pairs whose outcome depends on strength and on a difference in style."""
    rng = np.random.default_rng(seed)
    k = len(strengths)
    one = rng.integers(0, k, count)
    other = (one + rng.integers(1, k, count)) % k
    # The stronger ones write at greater length: without control, length passes for strength.
    style = 0.8 * (one - other) / k + rng.normal(0, 0.5, count)
    chance = 1 / (1 + np.exp(-(strengths[one] - strengths[other] + effect * style)))
    worth = np.where(rng.random(count) < 0.15, 0.5, (rng.random(count) < chance).astype(float))
    return one, other, worth, style[:, None]


@pytest.mark.slow
def test_it_is_the_logistic_regression_of_statsmodels():
    import statsmodels.api as sm

    one, other, worth, style = battles(1, 600, np.array([0.0, 0.3, 0.9]), 0.7)
    found = bradley_terry(one, other, worth, covariates=style)
    spread = np.sqrt(np.mean(style**2))
    design = np.hstack([np.eye(3)[one] - np.eye(3)[other], style / spread])[:, 1:]  # the first player is the origin
    fitted = sm.GLM(worth, design, family=sm.families.Binomial()).fit(tol=1e-12)
    players = np.concatenate([[0.0], fitted.params[:2]])
    expected = 1000 + 400 / np.log(10) * (players - players.mean())
    assert found.ratings == pytest.approx(expected, abs=0.01)
    assert found.effects[0].points == pytest.approx(400 / np.log(10) * fitted.params[2], abs=0.01)


def test_without_differences_in_style_nothing_changes():
    one, other, worth, style = battles(2, 400, np.array([0.0, 0.5]), 0.0)
    plain = bradley_terry(one, other, worth, prompts=np.arange(400) % 40)
    same = bradley_terry(one, other, worth, prompts=np.arange(400) % 40, covariates=0 * style)
    assert same.ratings == pytest.approx(plain.ratings, abs=1e-4)
    for a, b in zip(same.intervals, plain.intervals, strict=True):
        assert a == pytest.approx(b, abs=0.05)  # a hair of a prior
    assert same.effects[0].points == pytest.approx(0.0)


@pytest.mark.slow
def test_control_takes_out_what_length_bought():
    """Two equals, one of whom writes at length before judges who like that: the plain rating is fooled."""
    one, other, worth, style = battles(3, 4000, np.zeros(2), 2.0)
    prompts = np.arange(4000) % 200
    plain = bradley_terry(one, other, worth, prompts=prompts)
    fair = bradley_terry(one, other, worth, prompts=prompts, covariates=style)
    assert plain.intervals[1][0] > 1000  # surely better, it says
    assert fair.intervals[1][0] < 1000 < fair.intervals[1][1]
    assert fair.effects[0].interval[0] > 0


@pytest.mark.simulation
def test_intervals_over_prompts_cover():
    """The effect of style lies in its interval about as often as promised."""
    inside = 0
    for seed in range(60):
        one, other, worth, style = battles(seed, 300, np.array([0.0, 0.4]), 1.0)
        clean = np.where(worth == 0.5, (np.random.default_rng(seed).random(300) < 0.5).astype(float), worth)
        found = bradley_terry(one, other, clean, prompts=np.arange(300) % 50, covariates=style)
        wanted = 0.85 * 400 / np.log(10) * np.sqrt(np.mean(style**2))  # 15 % of the battles were decided by a coin
        low, high = found.effects[0].interval
        inside += low <= wanted <= high
    assert inside >= 50


def test_style_is_length_and_markup_outside_of_code():
    for text, marks in {"# A\n- b\n1. c\n**d**": 4, "```html\n# no heading\n- no list\n```": 0}.items():
        assert style_of(text) == (len(text), marks)


@pytest.mark.slow
async def test_the_ranking_by_votes_and_with_control(run_suite, store):
    long, short = "long answer " * 20, "brief"
    run = await run_suite(
        targets=[
            {"id": "long", "target": "mock:x", "options": {"answer": long}},
            {"id": "short", "target": "mock:x", "options": {"answer": short}},
        ],
        cases=numbered(12),
    )
    scores = read_scores(sources_of(run))
    with pytest.raises(FairtrialError, match="there are no votes"):
        rank(scores, by="votes")
    with pytest.raises(FairtrialError, match="style can be controlled"):
        rank(scores, control_style=True)
    for case in range(12):
        choice = "one" if case < 8 else "other" if case < 11 else "tie"
        add_vote(
            store, run.id, Vote(case_position=case, repeat=0, arm_one=0, arm_other=1, choice=choice, left=case % 2)
        )
    found = rank(scores, by="votes")
    assert found.matrix.wins == [[0.0, 8.5], [3.5, 0.0]] and found.matrix.prompts == 12
    rating = 1000 + 200 / np.log(10) * np.log(8.5 / 3.5)
    assert found.places[0].rating == pytest.approx(rating, abs=0.1)
    controlled = rank(
        scores, by="votes", control_style=True
    )  # who is long is also who wins: nobody can tell them apart
    assert controlled.style == [] and controlled.places[0].rating is None
    assert any("cannot be separated from style" in note for note in controlled.notes)


def test_whoever_won_every_time_was_compared_all_the_same():
    found = bradley_terry([0, 0, 1], [1, 1, 2], [1, 1, 1], covariates=np.zeros((3, 2)))
    assert len(set(found.groups)) == 1
