"""Rankings, power and variance: what they say, and that it is what was planted."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fairtrial.analyse.planning import cases_to_pass, cases_to_see, cases_within, plan_power
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.variance import arm_variances
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import power
from fairtrial.stats.mean import Mean
from fairtrial.workflows.pairwise import apair
from tests.analyse.test_compare import arm, cases


def noisy(name, chances, repeats, seed=0):
    """An arm that is right with a chance of its own on every case, anew in every repeat."""
    rng = np.random.default_rng(seed)
    answers = {
        f"c{n:02}": ["42" if rng.random() < chance else "x" for _ in range(repeats)] for n, chance in enumerate(chances)
    }
    return {"id": name, "target": "mock:x", "options": {"answers": answers}}


def call(tmp_path, *args):
    found = CliRunner().invoke(cli, [*args, "--store", f"sqlite:///{tmp_path}/test.db"], standalone_mode=False)
    assert found.exception is None, found.exception
    return found.stdout


class TestRank:
    @pytest.mark.slow
    async def test_ranks_are_as_sure_as_the_intervals(self, run_suite, tmp_path):
        run = await run_suite(
            targets=[arm("low", 20, 100), arm("high", 95, 100), arm("nearly", range(6, 100), 100)], cases=cases(100)
        )
        found = rank(read_scores(sources_of(run)))
        assert [(place.label, place.rank, place.worst_rank) for place in found.places] == [
            ("high", 1, 2),
            ("nearly", 1, 2),
            ("low", 3, 3),
        ]
        assert found.by == "scores" and found.cases == 100
        assert found.places[0].rating > 1000 > found.places[-1].rating
        low, high = found.places[-1].rating_ci95
        assert low < found.places[-1].rating < high
        shown = call(tmp_path, "rank", "--matrix")
        assert "1–2" in shown and "wins against" in shown
        document = json.loads(call(tmp_path, "rank", "--json"))
        assert document["places"][0]["aggregate"]["mean"] == pytest.approx(95)

    @pytest.mark.slow
    async def test_win_matrix(self, run_suite):
        run = await run_suite(targets=[arm("a", 8, 10), arm("b", 4, 10)], cases=cases(10))
        matrix = rank(read_scores(sources_of(run))).matrix
        assert matrix.wins == [[0, 7], [3, 0]] and (matrix.battles, matrix.prompts) == (10, 10)  # 4 wins, 6 ties

    async def test_common_cases_only(self, run_suite):
        run = await run_suite(
            targets=[arm("a", 30), arm("frail", 30, faults={"refused": 0.5})], cases=cases(), retry={"attempts": 1}
        )
        found = rank(read_scores(sources_of(run)))
        scored = sum(1 for trial in run.trials() if trial.arm == "frail" and trial.score is not None)
        assert found.cases == scored and "cases that every arm has a score for" in found.notes[0]

    async def test_from_verdicts(self, run_suite, store):
        verdict = {"marks": {"good": 9, "poor": 3}, "otherwise": 1}
        run = await run_suite(
            targets=[{"id": n, "target": "mock:x", "options": {"answer": f"{n} 42"}} for n in ("poor", "good")],
            judge={"target": "mock:judge", "options": {"verdict": verdict}},
            cases=cases(10),
        )
        scores = read_scores(sources_of(run))
        with pytest.raises(FairtrialError, match="fairtrial pairwise"):
            rank(scores, by="verdicts")
        await apair(run.id, store=store)
        found = rank(scores)
        assert found.by == "verdicts" and found.matrix.wins == [[0, 0], [10, 0]]
        elo = {place.label: place.elo for place in found.places}
        assert elo["good"] > elo["poor"] + 100
        assert found.places[0].rating is None and any("no bound" in note for note in found.notes)
        assert rank(scores, by="scores").matrix.by == "scores"

    async def test_one_arm_cannot_be_ranked(self, run_suite):
        with pytest.raises(FairtrialError, match="two arms"):
            rank(read_scores(sources_of(await run_suite(targets=[arm("a", 3, 4)], cases=cases(4)))))


class TestPower:
    @pytest.mark.slow
    async def test_cases_needed_follow_the_formula(self, run_suite, tmp_path):
        run = await run_suite(targets=[arm("a", 40), arm("b", 20)], cases=cases())
        scores = read_scores(sources_of(run))
        found = plan_power(scores, choose(scores), deltas=[0.1]).pairs[0]
        d = np.array([1.0] * 20 + [0.0] * 20)
        assert found.std_dev == pytest.approx(d.std(ddof=1)) and found.noise_sd is None
        assert found.cases_needed == [(0.1, [(1, power(d.std(ddof=1), 0.1, pilot=40))])]
        assert "The effect of repeats is unknown" in call(tmp_path, "power")
        document = json.loads(call(tmp_path, "power", "--delta", "10", "--json"))
        assert document["pairs"][0]["cases_needed"][0]["difference"] == pytest.approx(10)

    @pytest.mark.slow
    async def test_repeats_help_where_answers_are_noisy(self, run_suite):
        chances = np.full(150, 0.5)
        run = await run_suite(
            repeats=4, targets=[noisy("a", chances, 4, 1), noisy("b", chances, 4, 2)], cases=cases(150)
        )
        scores = read_scores(sources_of(run))
        found = plan_power(scores, choose(scores), deltas=[0.05]).pairs[0]
        assert found.case_sd < 0.15  # the cases are all alike: what differs is chance
        # One answer of each differs by something with variance ½·(score gap)²; repeats divide it.
        needed = dict(found.cases_needed[0][1])
        assert needed[1] > 3 * needed[5] and found.noise_sd > 2 * found.case_sd

    @pytest.mark.slow
    async def test_the_prediction_holds(self, run_suite):
        """A difference as large as the one that n cases can detect is found in about 80 % of experiments."""
        rng = np.random.default_rng(4)
        d = rng.normal(0, 0.3, 200)
        from fairtrial.stats import detectable, paired

        delta = detectable(0.3, 200)
        hits = [paired(rng.normal(delta, 0.3, 200), np.zeros(200)).p_value < 0.05 for _ in range(1000)]
        assert 0.76 < np.mean(hits) < 0.84 and len(d) == 200

    async def test_nothing_to_plan_by(self, run_suite):
        scores = read_scores(sources_of(await run_suite(targets=[arm("a", 1, 1), arm("b", 1, 1)], cases=cases(1))))
        with pytest.raises(FairtrialError, match="nothing to plan from"):
            plan_power(scores, choose(scores))


class TestVariance:
    @pytest.mark.slow
    async def test_shares_are_what_was_planted(self, run_suite, tmp_path):
        rng = np.random.default_rng(5)
        sure = (rng.random(150) < 0.5).astype(float)
        run = await run_suite(
            repeats=4,
            targets=[noisy("chance", np.full(150, 0.5), 4, 1), noisy("sure", sure, 4, 2)],
            cases=cases(150),
        )
        found = {item.label: item for item in arm_variances(run)}
        assert found["chance"].shares["repeat"] > 0.85 and found["sure"].shares["case"] == pytest.approx(1)
        assert "more repeats" in found["chance"].advice and "more cases" in found["sure"].advice
        assert (found["chance"].best_repeats or 9) > 2 and found["sure"].best_repeats == 0
        shown = call(tmp_path, "variance")
        assert "one more repeat" in shown and "100 %" in shown
        document = json.loads(call(tmp_path, "variance", "--json"))
        assert document["arms"][1]["shares"]["case"] == pytest.approx(1)

    @pytest.mark.slow
    async def test_judges_have_a_share(self, run_suite):
        verdict = {"marks": {"42": 6}, "otherwise": 4, "noise": 2.0}
        run = await run_suite(
            repeats=2,
            targets=[arm("m", range(0, 60, 2), 60)],
            judge={"target": "mock:judge", "options": {"verdict": verdict}},
            panel={"judgements": 3},
            scorer="llm_judge",
            cases=cases(60),
        )
        found = arm_variances(run)[0]
        assert found.components.judgements == 3 and 0.1 < found.components.judge**0.5 < 0.3
        assert {step.what for step in found.steps} == {"cases", "repeats", "judgements"}
        assert found.calls == 60 * (1 + 3)  # an answer and its three judgements
        assert all(step.std_err < found.std_err for step in found.steps)
        assert found.std_err == pytest.approx(run.arms[0].aggregate.std_err)  # as the run itself says

    async def test_one_answer_a_case_says_what_it_cannot_tell(self, run_suite):
        found = arm_variances(await run_suite(targets=[arm("m", 20)], cases=cases()))[0]
        assert found.components.repeat is None and "use 3 repeats" in found.advice
        assert found.calls == 40  # one more answer to every case
        with pytest.raises(FairtrialError, match="nothing varies yet"):
            arm_variances(await run_suite(targets=[arm("m", 1, 1)], cases=cases(1)))


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize(("sd", "delta"), [(0.1, 0.1), (0.1, 0.05), (0.2, 0.1), (0.3, 0.1)])
def test_what_is_planned_is_seen(sd, delta):
    """Whichever interval it is read off: t promised 10 cases for the first of them, and it takes about 50."""
    rng = np.random.default_rng(1)

    def share(cases, truth, told):
        samples = (Mean(np.clip(rng.normal(truth, sd, cases), -1, 1), bounds=(-1, 1), span=1) for _ in range(120))
        return np.mean([told(mean) for mean in samples])

    seen = cases_to_see(sd, delta, alpha=0.05, beta=0.2, pilot=100_000)
    assert share(seen, delta, lambda mean: mean.p_value() < 0.05) > 0.72
    assert share(seen // 2, delta, lambda mean: mean.p_value() < 0.05) < 0.72
    within = cases_within(sd, delta, alpha=0.05, beta=0.2, pilot=100_000)
    assert share(within, 0, lambda mean: mean.p_within(delta) < 0.05) > 0.72
    assert cases_within(sd, 1.5, alpha=0.05, beta=0.2, pilot=100_000) < 10  # p is 0 there, which is not nothing
    passing = cases_to_pass(sd, delta, alpha=0.05)
    assert share(passing, 0, lambda mean: 2 * mean.p_above(-delta) < 0.05) > 0.72
