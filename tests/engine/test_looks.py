"""Planned looks: a run that stops at one of them, arms that leave a race, and results that allow for both."""

from contextlib import asynccontextmanager

import numpy as np
import pytest

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.engine.early_stop import EarlyStop
from fairtrial.stats.looks import ends_of_looks, nominal_levels
from fairtrial.store.records import RunRecord
from fairtrial.workflows.resume import aresume
from tests.analyse.test_compare import arm, cases

LOOKS = RunOptions(looks=5)
RACE = RunOptions(race=True)


@pytest.fixture(autouse=True)
def known_orders(monkeypatch):
    """The order of cases comes from the plan, and so from its folder: these tests meet the same luck every time."""
    monkeypatch.setattr(RunRecord, "order_key", property(lambda record: f"run-{record.number}"))


def part(share, count=100, seed=1):
    """A share of the cases, drawn at random."""
    return set(np.random.default_rng(seed).permutation(count)[: round(share * count)].tolist())


def answered(run):
    """How many cases each arm answered."""
    return {one.arm: one.trials - one.waiting for one in run.arms}


async def test_a_clear_difference_ends_the_run_at_a_look(run_suite, store):
    run = await run_suite(LOOKS, targets=[arm("good", 100, 100), arm("bad", part(0.4), 100)], cases=cases(100))
    assert run.status == "stopped" and run.record.reason == "decided at look 2 of 5, after 40 cases"
    assert answered(run) == {"good": 40, "bad": 40}
    found = ft.compare(run, "good", "bad")
    assert found.verdict == "better" and found.look.number == 2
    assert found.level == pytest.approx(1 - nominal_levels(5)[1])
    assert found.ci95[0] < found.difference < found.ci95[1] and found.ci95[0] > 0
    assert found.p_value < 0.05 and found.robustness == [] and found.paired_t is None
    # Going on asks the rest: at the last look, which errs in 4.2 % by itself.
    whole = await aresume(run.id, store=store)
    assert whole.status == "completed" and answered(whole) == {"good": 100, "bad": 100}
    last = ft.compare(whole, "good", "bad")
    assert last.level == pytest.approx(1 - nominal_levels(5)[-1]) and last.look.number == 5
    assert len({trial.trial_id for trial in whole.trials()}) == 200


async def test_no_difference_goes_on_to_the_end(run_suite):
    arms = [arm("a", part(0.5), 100), arm("b", part(0.5, seed=2), 100)]
    run = await run_suite(LOOKS, targets=arms, cases=cases(100))
    assert run.status == "completed" and answered(run) == {"a": 100, "b": 100}
    found = ft.compare(run, "a", "b")
    assert found.verdict == "cannot tell" and found.level == pytest.approx(1 - nominal_levels(5)[-1])


async def test_no_case_beyond_a_look_is_asked_before_it(run_suite):
    """A slow arm holds the quick one back at every look, whatever the concurrency."""
    arms = [arm("good", 100, 100, latency_ms=1.0), arm("bad", part(0.4), 100)]
    run = await run_suite(LOOKS, concurrency=20, targets=arms, cases=cases(100))
    assert answered(run) == {"good": 40, "bad": 40}


async def test_arms_that_lost_leave_the_race(run_suite, store):
    shares = {"first": 1.0, "second": 0.9, "third": 0.5, "fourth": 0.0}
    arms = [arm(name, part(share, 200), 200) for name, share in shares.items()]
    run = await run_suite(RACE, targets=arms, cases=cases(200))
    ends = ends_of_looks(200, 5)
    asked = answered(run)
    assert asked["fourth"] == ends[0] and asked["third"] in ends[:3] and asked["first"] == asked["second"]
    assert asked["second"] > asked["third"]
    board = ft.rank(run)
    assert [place.label for place in board.places] == list(shares)
    assert [place.rank for place in board.places][2:] == [3, 4]
    found = {(pair.a, pair.b): pair for pair in ft.compare(run).pairs}
    assert found["first", "fourth"].verdict == "better" and found["first", "fourth"].count == ends[0]
    assert found["first", "second"].count == asked["first"]
    assert run.status == "stopped" and "left in the race at look" in run.record.reason


async def test_a_race_ends_when_one_arm_is_left(run_suite):
    arms = [arm("best", 200, 200), arm("middle", part(0.5, 200), 200), arm("worst", 0, 200)]
    run = await run_suite(RACE, targets=arms, cases=cases(200))
    assert run.record.reason == "one arm of 3 left in the race at look 1 of 5, after 40 cases"
    assert set(answered(run).values()) == {40}


async def test_a_gap_that_cannot_show_any_more_ends_the_run(run_suite):
    arms = [arm("a", part(0.5, 200), 200), arm("b", part(0.5, 200) ^ {0, 1, 2, 3, 4, 5}, 200)]
    run = await run_suite(RunOptions(looks=5, gap=0.04), targets=arms, cases=cases(200))
    assert run.status == "stopped" and answered(run)["a"] < 200
    assert run.record.reason.startswith("no gap of 4 points to be expected any more at look")
    assert ft.compare(run, "a", "b").verdict == "cannot tell"


async def test_arms_that_are_equivalent_end_it(run_suite):
    arms = [arm("a", 390, 400), arm("b", range(10, 400), 400)]
    run = await run_suite(RunOptions(looks=4, stop_when="equivalent", margin=0.1), targets=arms, cases=cases(400))
    assert run.status == "stopped" and "equivalent at look" in run.record.reason
    assert ft.compare(run, "a", "b").verdict == "equivalent"


@pytest.mark.parametrize("options", [LOOKS, RACE])
async def test_interrupted_and_resumed_it_takes_the_same_looks(write_suite, store, monkeypatch, options):
    shares = {"good": 1.0, "fair": 0.6, "bad": 0.2}
    path = write_suite(targets=[arm(name, part(share), 100) for name, share in shares.items()], cases=cases(100))
    whole = await pipeline.arun(pipeline.load(path, options), store=store)
    monkeypatch.setattr(RunRecord, "order_key", property(lambda record: f"run-{whole.record.number}"))
    interrupted, really = [], EarlyStop.ended

    @asynccontextmanager
    async def watch(engine):
        def ended(decision, case, position, score):
            interrupted.append(case)
            if len(interrupted) == 45:
                engine.interrupt()
            really(decision, case, position, score)

        with monkeypatch.context() as patch:
            patch.setattr(EarlyStop, "ended", ended)
            yield

    run = await pipeline.arun(pipeline.load(path, options), store=store, watch=watch)
    assert run.status == "interrupted"
    run = await aresume(run.id, store=store)
    assert (run.status, run.record.reason, answered(run)) == (whole.status, whole.record.reason, answered(whole))


async def test_a_failed_trial_is_a_complete_one(run_suite):
    """Every look comes, although a tenth of the trials has no score."""
    arms = [arm("good", 200, 200, faults={"refused": 0.1}), arm("bad", part(0.3, 200), 200)]
    run = await run_suite(LOOKS, targets=arms, cases=cases(200), retry={"attempts": 1})
    assert run.record.reason.startswith("decided at look") and answered(run)["good"] == answered(run)["bad"]


async def test_what_a_suite_plans_a_part_of_it_does_not(run_suite, write_suite):
    keys = {"targets": [arm("a", 100, 100), arm("b", 0, 100)], "cases": cases(100), "looks": 4}
    run = await run_suite(**keys)
    assert run.record.reason == "decided at look 1 of 4, after 25 cases"
    path = write_suite(**keys)
    assert pipeline.load(path, RunOptions(first=10)).settings.stop is None
    assert pipeline.load(path, RunOptions(targets=("a",))).settings.stop is None
    assert pipeline.load(path, RunOptions(looks=0)).settings.stop is None
    assert pipeline.load(path, RunOptions(looks=10)).settings.stop.looks == 10
    assert pipeline.load(write_suite(**{**keys, "looks": None, "gap": 5})).settings.stop.gap == 0.05


@pytest.mark.parametrize(
    ("keys", "options", "says"),
    [
        ({"targets": ["mock:echo"]}, {}, "two arms"),
        ({"cases": cases(10)}, {}, "at least 20 cases"),
        ({"cases": cases(60, weight=2)}, {}, "equal weight"),
        ({"cases": cases(60, targets=["a"])}, {}, "every case asked of every arm"),
        ({"conditions": {"c": {"prompt": ["{{ input }}", "Q: {{ input }}"]}}}, {}, "several wordings"),
        ({}, {"looks": 21}, "up to 20 looks"),
    ],
)
def test_what_looks_cannot_be_used_for(write_suite, keys, options, says):
    suite = {"targets": [arm("a", 1, 60), arm("b", 1, 60)], "cases": cases(60), **keys}
    with pytest.raises(FairtrialError, match=says):
        pipeline.load(write_suite(**suite), RunOptions(**{"looks": 5, **options}))
