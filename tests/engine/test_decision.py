"""Ending a run as soon as its question is answered."""

import numpy as np
import pytest

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, Case, Condition, TargetSpec
from fairtrial.core.order import case_order
from fairtrial.core.settings import FEWEST_CASES, StopSpec
from fairtrial.engine.decision import Decision
from fairtrial.stats import Bets, betting_sequence
from fairtrial.store.records import RunRecord
from fairtrial.workflows.resume import arescore, aresume
from tests.analyse.test_compare import arm, cases

DECIDED = RunOptions(stop_when="decided")


@pytest.fixture(autouse=True)
def known_orders(monkeypatch):
    """The order of cases comes from the plan, and so from its folder: these tests meet the same luck every time."""
    monkeypatch.setattr(RunRecord, "order_key", property(lambda record: f"run-{record.number}"))


@pytest.mark.simulation
def test_the_bets_are_fair():
    """Without a difference, however rare and lopsided single ones are, hardly anybody gets rich."""
    rng = np.random.default_rng(1)
    draws = {
        "ternary": lambda: float(rng.integers(-1, 2)),
        "one in fifty": lambda: 1.0 if rng.random() < 0.02 / 1.02 else -0.02,
        "marks": lambda: float(np.clip(rng.normal(0, 0.2), -1, 1)),
    }
    for draw in draws.values():
        wrong = 0
        for _ in range(100):
            bets = Bets()
            for _ in range(200):
                bets.add(draw())
            wrong += min(bets.p_above(), bets.p_below()) < 0.05
        assert wrong / 100 <= 0.06


def test_the_interval_and_p_say_the_same():
    rng = np.random.default_rng(2)
    for effect in (0.0, 0.1, 0.4):
        bets = Bets()
        for _ in range(150):
            bets.add(float(np.clip(rng.normal(effect, 0.4), -1, 1)))
        low, high = bets.interval()
        found = bets.now()
        assert low <= effect <= high and found.mean == pytest.approx(effect, abs=0.15)
        assert (found.p_above < 0.05) == (low > 0)
    assert betting_sequence([0.5] * 40).interval[0] > 0
    marks = betting_sequence([5.0] * 40, bounds=(1.0, 5.0))
    assert (marks.p_above, marks.p_below) == (0, 1) and marks.interval[0] > 4
    losses = betting_sequence([-5.0] * 40, bounds=(-5.0, -1.0))
    assert (losses.p_above, losses.p_below) == (1, 0)


@pytest.mark.simulation
def test_equivalence_is_not_claimed_from_silence():
    """Two models at 97 % and 100 %: fifty cases without a difference do not make them equivalent within 2 points."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(100):
        bets = Bets(points=(0.02, -0.02))
        for _ in range(400):
            bets.add(float(rng.random() < 0.03))
            if bets.p_above(-0.02) < 0.05 and bets.p_below(0.02) < 0.05:
                wrong += 1
                break
    assert wrong <= 5


@pytest.mark.slow
async def test_a_clear_difference_ends_the_run_early(run_suite, store):
    run = await run_suite(DECIDED, targets=[arm("good", 400, 400), arm("bad", range(0, 400, 2), 400)], cases=cases(400))
    assert run.status == "stopped" and "decided after" in run.record.reason
    done = sum(arm.scored for arm in run.arms) // 2
    assert FEWEST_CASES <= done < 80
    found = ft.compare(run, "good", "bad")
    assert found.verdict == "better" and found.method == "anytime-valid bets" and found.robustness == []
    assert any("whenever it stopped" in note for note in ft.compare(run).notes)
    # Going on asks the rest; what was learnt stays valid at the new end.
    whole = await aresume(run.id, store=store)
    assert whole.status == "completed" and ft.compare(whole, "good", "bad").method == "anytime-valid bets"
    assert len({trial.trial_id for trial in whole.trials()}) == 800


async def test_the_order_is_shuffled_so_that_sorted_datasets_do_not_fool(run_suite):
    """The first half of the cases would decide for the wrong arm; a random beginning does not."""
    run = await run_suite(
        DECIDED, targets=[arm("front", 100, 300), arm("back", range(100, 300), 300)], cases=cases(300)
    )
    asked = {trial.case_id for trial in run.trials()}
    assert any(name > "c200" for name in asked) and len(asked) >= FEWEST_CASES
    assert ft.compare(run, "front", "back").verdict == "worse"


@pytest.mark.slow
async def test_no_difference_goes_on_to_the_end(run_suite):
    some = np.random.default_rng(2).permutation(120)
    run = await run_suite(
        DECIDED,
        targets=[arm("a", set(some[:60].tolist()), 120), arm("b", set(some[30:90].tolist()), 120)],
        cases=cases(120),
    )
    assert run.status == "completed" and ft.compare(run, "a", "b").verdict == "cannot tell"


@pytest.mark.slow
async def test_equivalent(run_suite):
    same = [arm("a", 390, 400), arm("b", range(10, 400), 400)]
    stop = RunOptions(stop_when="equivalent", margin=0.2)
    run = await run_suite(stop, targets=same, cases=cases(400))
    assert run.status == "stopped"
    assert ft.compare(run, "a", "b").verdict == "equivalent"  # the margin that it stopped by counts
    assert ft.compare(run, "a", "b", margin=0.01).verdict == "cannot tell"
    run = await run_suite(stop, targets=[arm("a", 400, 400), arm("b", 0, 400)], cases=cases(400))
    assert run.status == "stopped" and ft.compare(run, "a", "b", margin=0.2).verdict == "better"


@pytest.mark.slow
async def test_interrupted_and_resumed_it_looks_at_everything(write_suite, store, monkeypatch):
    suite = pipeline.load(
        write_suite(targets=[arm("good", 400, 400), arm("bad", range(0, 400, 2), 400)], cases=cases(400)), DECIDED
    )
    interrupted, decided = [], Decision.ended

    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def watch(engine):
        def ended(decision, case, position, score):
            interrupted.append(case)
            if len(interrupted) == 20:
                engine.interrupt()
            decided(decision, case, position, score)

        with monkeypatch.context() as patch:
            patch.setattr(Decision, "ended", ended)
            yield

    run = await pipeline.arun(suite, store=store, watch=watch)
    assert run.status == "interrupted"
    run = await aresume(run.id, store=store)
    assert run.status == "stopped" and sum(arm.scored for arm in run.arms) < 300


@pytest.mark.parametrize(
    ("keys", "options", "says"),
    [
        ({"targets": ["mock:echo"]}, {}, "two arms"),
        ({"cases": cases(10)}, {}, "at least 20 cases"),
        ({"cases": cases(60, weight=2)}, {}, "equal weight"),
        ({"cases": cases(60, cluster="k")}, {}, "independent cases"),
        ({}, {"stop_when": "equivalent"}, "needs --margin"),
    ],
)
def test_what_it_cannot_be_used_for(write_suite, keys, options, says):
    suite = {"targets": [arm("a", 1, 60), arm("b", 1, 60)], "cases": cases(60), **keys}
    with pytest.raises(FairtrialError, match=says):
        pipeline.load(write_suite(**suite), RunOptions(**{"stop_when": "decided", **options}))


@pytest.mark.simulation
def test_false_decisions_are_rare():
    """150 experiments without a difference, looked at after every case up to 300: at most 5 % are decided. More of them:
    `benchmarks/STATISTICS.md`."""
    arms = [
        Arm(
            name=name,
            target=TargetSpec(id=name, provider="mock", kind="mock", model="x"),
            condition=Condition(),
            params={},
            scorer={},
            position=n,
        )
        for n, name in enumerate("ab")
    ]
    rng = np.random.default_rng(3)
    wrong = 0
    for number in range(150):
        order = case_order(str(number), 300)
        decision = Decision(StopSpec(when="decided"), arms, order)
        for position in order:
            decision.expect(Case(id=str(position), input="", position=position))
            difficulty = rng.random()
            for n in range(2):
                decision.ended(position, n, float(rng.random() < difficulty))
            if decision.reason:
                wrong += 1
                break
    assert wrong / 150 <= 0.05


def test_every_pair_of_arms_bets_with_its_share_of_five_percent():
    """Three arms are three pairs: together they err no more often than one would."""
    specs = [TargetSpec(id=name, provider="mock", kind="mock", model="x") for name in "abc"]
    arms = [
        Arm(name=spec.id, target=spec, condition=Condition(), params={}, scorer={}, position=n)
        for n, spec in enumerate(specs)
    ]
    scores = [(1.0, float(n % 4 > 0), 0.0) for n in range(200)]

    def cases_needed(alpha: float) -> int:
        bets = {pair: Bets(alpha=alpha) for pair in ((0, 1), (0, 2), (1, 2))}
        for n, values in enumerate(scores, 1):
            for (a, b), bet in bets.items():
                bet.add(values[a] - values[b])
            if n >= FEWEST_CASES and all(min(bet.p_above(), bet.p_below()) < alpha for bet in bets.values()):
                return n
        raise AssertionError

    decision = Decision(StopSpec(when="decided"), arms, range(len(scores)))
    for position, values in enumerate(scores):
        decision.expect(Case(id=str(position), input="", position=position))
        for n, value in enumerate(values):
            decision.ended(position, n, value)
    assert cases_needed(0.05) < cases_needed(0.05 / 3)
    assert decision.reason == f"decided after {cases_needed(0.05 / 3)} cases"


async def test_a_pair_of_a_run_that_could_stop_belongs_to_all_pairs_of_that_run(run_suite):
    """The run watched three pairs to stop: who looks at one of them alone gets the interval that this allows."""
    arms = [arm("best", 60, 60), arm("middle", 40, 60), arm("worst", 0, 60)]
    run = await run_suite(DECIDED, targets=arms, cases=cases(60))
    assert ft.compare(run, "best", "middle").level == pytest.approx(1 - 0.05 / 3)
    two = await run_suite(DECIDED, targets=arms[:2], cases=cases(60))
    assert ft.compare(two, "best", "middle").level == pytest.approx(0.95)


@pytest.mark.slow
async def test_trying_again_leaves_it_stopped(run_suite, store):
    from fairtrial.analyse.gate import Terms, gate
    from fairtrial.analyse.score_table import sources_of

    frail = [arm("good", 300, 300, faults={"refused": 0.05}), arm("bad", range(0, 300, 3), 300)]
    run = await run_suite(DECIDED, targets=frail, cases=cases(300), retry={"attempts": 1})
    assert run.status == "stopped"
    reason = run.record.reason
    run = await aresume(run.id, store=store, mode="retry")
    assert (run.status, run.record.reason) == ("stopped", reason)
    run = await arescore(run.id, scorer={"type": "exact"}, store=store)
    assert run.status == "stopped" and gate(sources_of(run)[0], None, Terms(min_coverage=0.5)).result == "passed"


@pytest.mark.slow
async def test_little_is_spent_after_the_decision(run_suite):
    run = await run_suite(
        DECIDED, concurrency=4, targets=[arm("good", 400, 400, latency_ms=1.0), arm("bad", 0, 400)], cases=cases(400)
    )
    assert run.record.reason == f"decided after {FEWEST_CASES} cases"
    trials = {item.arm: item.trials - item.waiting for item in run.arms}
    assert all(FEWEST_CASES <= asked <= FEWEST_CASES + 10 for asked in trials.values()), trials


async def test_a_change_of_mind_is_no_verdict():
    """Sure of one thing at first, of the opposite later: the bets say so, and no side wins."""
    bets = Bets()
    for value in [0.9] * 30 + [-0.9] * 600:
        bets.add(value)
    assert bets.interval() is None and bets.p_above() < 0.05 and bets.p_below() < 0.05


def test_a_series_is_not_stopped(write_suite):
    from click.testing import CliRunner

    from fairtrial.cli.main import cli

    path = write_suite(targets=[arm("a", 1, 60), arm("b", 1, 60)], cases=cases(60))
    found = CliRunner().invoke(cli, ["run", str(path), "--runs", "2", "--stop-when", "decided"], standalone_mode=False)
    assert "cannot be combined" in str(found.exception)
