"""Ending a run as soon as its question is answered."""

import numpy as np
import pytest

import fairtrial as ft
from fairtrial import again, pipeline
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.core.stopping import FEWEST, case_order
from fairtrial.core.suite import Arm, Case, Condition, StopSpec, TargetSpec
from fairtrial.engine.decision import Decision
from fairtrial.stats import confidence_sequence
from fairtrial.stats.sequence import RunningSequence
from tests.test_compare import arm, cases

DECIDED = RunOptions(stop_when="decided")


@pytest.fixture(autouse=True)
def known_orders(monkeypatch):
    """The order of cases comes from the run's id: these tests meet the same luck every time."""
    numbers = iter(range(1, 100))
    monkeypatch.setattr(pipeline, "new_id", lambda: f"run-{next(numbers)}")


def test_running_and_whole_are_the_same():
    d = np.random.default_rng(1).normal(0.1, 1, 200)
    running = RunningSequence(best_at=80)
    for value in d:
        running.add(value)
    whole = confidence_sequence(d, best_at=80, among=3)
    now = running.now(among=3)
    assert now.interval == pytest.approx(whole.interval) and now.p_value == pytest.approx(whole.p_value)
    # p is below a level exactly where that level's interval leaves 0 out
    for level in (0.2, 0.05, 0.001):
        low, high = confidence_sequence(d, best_at=80, among=0.05 / level).interval
        assert (now.p_value < level) == (low > 0 or high < 0)


async def test_a_clear_difference_ends_the_run_early(run_suite, store):
    run = await run_suite(DECIDED, targets=[arm("good", 400, 400), arm("bad", range(0, 400, 2), 400)], cases=cases(400))
    assert run.status == "stopped" and "decided after" in run.record.reason
    done = sum(arm.scored for arm in run.arms) // 2
    assert FEWEST <= done < 120
    found = ft.compare(run, "good", "bad")
    assert found.verdict == "better" and found.method == "anytime-valid sequence" and found.robustness == []
    assert any("whenever it stopped" in note for note in ft.compare(run).notes)
    # Going on asks the rest; what was learnt stays valid at the new end.
    whole = await again.aresume(run.id, store=store)
    assert whole.status == "completed" and ft.compare(whole, "good", "bad").method == "anytime-valid sequence"
    assert len({trial.trial_id for trial in whole.trials()}) == 800


async def test_the_order_is_shuffled_so_that_sorted_datasets_do_not_fool(run_suite):
    """The first half of the cases would decide for the wrong arm; a random beginning does not."""
    run = await run_suite(
        DECIDED, targets=[arm("front", 100, 300), arm("back", range(100, 300), 300)], cases=cases(300)
    )
    asked = {trial.case_id for trial in run.trials()}
    assert any(name > "c200" for name in asked) and len(asked) >= FEWEST
    assert ft.compare(run, "front", "back").verdict == "worse"


async def test_no_difference_goes_on_to_the_end(run_suite):
    some = np.random.default_rng(2).permutation(120)
    run = await run_suite(
        DECIDED,
        targets=[arm("a", set(some[:60].tolist()), 120), arm("b", set(some[30:90].tolist()), 120)],
        cases=cases(120),
    )
    assert run.status == "completed" and ft.compare(run, "a", "b").verdict == "cannot tell"


async def test_equivalent(run_suite):
    same = [arm("a", 390, 400), arm("b", range(10, 400), 400)]
    stop = RunOptions(stop_when="equivalent", margin=0.2)
    run = await run_suite(stop, targets=same, cases=cases(400))
    assert run.status == "stopped" and ft.compare(run, "a", "b", margin=0.2).verdict == "equivalent"
    run = await run_suite(stop, targets=[arm("a", 400, 400), arm("b", 0, 400)], cases=cases(400))
    assert run.status == "stopped" and ft.compare(run, "a", "b", margin=0.2).verdict == "better"


async def test_interrupted_and_resumed_it_looks_at_everything(write_suite, store):
    suite = pipeline.load(
        write_suite(targets=[arm("good", 400, 400), arm("bad", range(0, 400, 2), 400)], cases=cases(400)), DECIDED
    )
    interrupted = []

    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def watch(engine):
        decided = engine._decision.ended

        def ended(case, position, score):
            interrupted.append(case)
            if len(interrupted) == 60:
                engine.interrupt()
            decided(case, position, score)

        engine._decision.ended = ended
        yield

    run = await pipeline.arun(suite, store=store, watch=watch)
    assert run.status == "interrupted"
    run = await again.aresume(run.id, store=store)
    assert run.status == "stopped" and sum(arm.scored for arm in run.arms) < 300


@pytest.mark.parametrize(
    ("keys", "options", "says"),
    [
        ({"targets": ["mock:echo"]}, {}, "two arms"),
        ({"cases": cases(20)}, {}, "begins at 50"),
        ({"cases": cases(60, weight=2)}, {}, "count alike"),
        ({"cases": cases(60, cluster="k")}, {}, "stand alone"),
        ({}, {"stop_when": "equivalent"}, "needs --margin"),
    ],
)
def test_what_it_cannot_be_used_for(write_suite, keys, options, says):
    suite = {"targets": [arm("a", 1, 60), arm("b", 1, 60)], "cases": cases(60), **keys}
    with pytest.raises(FairtrialError, match=says):
        pipeline.load(write_suite(**suite), RunOptions(**{"stop_when": "decided", **options}))


def test_false_decisions_are_rare():
    """400 experiments without a difference, looked at after every case up to 500: at most 5 % are decided."""
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
    for number in range(400):
        order = case_order(str(number), 500)
        decision = Decision(StopSpec(when="decided", best_at=250), arms, order)
        for position in order:
            decision.expect(Case(id=str(position), input="", position=position))
            difficulty = rng.random()
            for n in range(2):
                decision.ended(position, n, float(rng.random() < difficulty))
            if decision.reason:
                wrong += 1
                break
    assert wrong / 400 <= 0.05
