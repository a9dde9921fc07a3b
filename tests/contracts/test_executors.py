"""One contract for every executor: what the engine relies on, wherever trials are carried out."""

from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairtrial import pipeline
from fairtrial.core.answer import Answer, Failure
from fairtrial.core.listening import NOBODY
from fairtrial.core.score import Score
from fairtrial.engine.budget import Budget
from fairtrial.engine.cluster.executor import ClusterExecutor
from fairtrial.engine.job import Job
from fairtrial.engine.local import LocalExecutor
from fairtrial.engine.scoring import Scoring
from fairtrial.engine.targets import open_targets
from fairtrial.engine.trials import trials_of
from tests.conftest import numbered
from tests.workers import WorkersHere


class Reports:
    """Notes what is reported, and takes every answer for one to be scored unless told otherwise."""

    def __init__(self, *, score: bool = True) -> None:
        self.events: list = []
        self._score = score

    def wanted(self, trial):
        return True

    async def turn_answered(self, trial, number, turn, cost):
        self.events.append(("turned", trial.place, turn.answer))

    async def answered(self, trial, outcome):
        self.events.append(("answered", trial.place, outcome.result))
        return outcome.result if self._score and isinstance(outcome.result, Answer) else None

    async def verdicts(self, trial):
        return ()

    async def scored(self, trial, result):
        self.events.append(("scored", trial.place, result))


async def no_files(attachment):
    raise AssertionError(attachment)


@pytest.fixture(params=["local", "workers"])
def carry_out(request, write_suite):
    """Carry out every trial of a suite, and return what was reported."""
    executors = {"local": LocalExecutor, "workers": partial(ClusterExecutor, backend=WorkersHere(2))}

    async def run(reports, stored=None, **keys):
        suite = pipeline.load(write_suite(**keys))
        job = Job(
            run_id="r", plan_id="p", series_id=None, arms=suite.arms,
            settings=suite.settings, variables=suite.variables, folder=suite.folder, mode="resume",
        )  # fmt: skip
        specs = [arm.target for arm in suite.arms]
        async with open_targets(specs, suite.folder, suite.variables, concurrency=2) as targets:
            made = executors[request.param](job, targets, Scoring(Path()), Budget(None), None, no_files)
            async with made as executor:
                lanes = executor.lanes()
                assert sorted(arm.position for lane in lanes for arm in lane.arms) == [
                    arm.position for arm in suite.arms
                ]
                assert all(lane.width >= 1 for lane in lanes)
                for trial in trials_of(suite.cases(), suite.arms):
                    await executor.carry_out(msgspec.structs.replace(trial, stored=stored), reports, NOBODY)
        return reports.events

    return run


async def test_an_answer_is_reported_and_then_its_score(carry_out):
    events = await carry_out(Reports(), targets=["mock:echo"], cases=[{"input": "Paris", "expected": "Paris"}])
    (first, place, answer), (second, same, score) = events
    assert (first, second) == ("answered", "scored") and place == same == (0, 0, 0)
    assert answer.text == "Paris" and isinstance(score, Score) and score.value == 1


async def test_what_is_not_to_be_scored_is_not(carry_out):
    events = await carry_out(Reports(score=False), cases=numbered(2))
    assert [name for name, _, _ in events] == ["answered"] * 2


async def test_a_failure_has_no_score(carry_out):
    down = {"target": "mock:echo", "options": {"faults": {"500": 1.0}}}
    ((name, _, result),) = await carry_out(Reports(), targets=[down], cases=numbered(1), retry={"attempts": 1})
    assert name == "answered" and isinstance(result, Failure)


async def test_a_stored_answer_is_only_scored(carry_out):
    events = await carry_out(Reports(), stored=Answer(text="42"), cases=numbered(2))
    assert [(name, score.value) for name, _, score in events] == [("scored", 1.0)] * 2


async def test_every_turn_of_a_conversation_is_reported_before_the_next_one(carry_out):
    case = {"id": "a", "turns": ["one", "two", "three"], "expected": "three"}
    events = await carry_out(Reports(), cases=[case])
    assert [(name, getattr(result, "text", None)) for name, _, result in events] == [
        ("turned", "one"),
        ("turned", "two"),
        ("answered", "three"),
        ("scored", None),
    ]
