"""A model that does not exist any more stops its arm at once, and says when it ended and what comes after it."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from fairtrial import pipeline
from fairtrial.core.errors import TargetUnusableError
from fairtrial.engine.patience import Patience
from fairtrial.providers import retirement
from tests.conftest import numbered

MANY = 200


@pytest.fixture(autouse=True)
def after_the_end(monkeypatch):
    monkeypatch.setattr(retirement, "now", lambda: datetime(2026, 12, 20, tzinfo=UTC))


def gone_after(count: int, state):
    """A watcher that removes the model from the server after so many trials."""

    @asynccontextmanager
    async def watch(engine):
        async def wait():
            while engine.progress.done < count:
                await asyncio.sleep(0.005)
            state.behaviour.models = ("another",)

        task = asyncio.create_task(wait())
        yield
        await task

    return watch


async def test_one_that_is_gone_from_the_start(run_suite, model_server, store):
    state = await model_server(models=("another",))
    with pytest.raises(TargetUnusableError) as caught:
        await run_suite(targets=["openai:gpt-5-mini"], cases=numbered(MANY))
    said = str(caught.value)
    assert said.startswith("openai:gpt-5-mini: it ended on 11 December 2026; its successor is gpt-5.6-terra (HTTP 404")
    assert "there is no such model" not in said
    assert state.calls.total() <= 10 and not list(store.trial_rows(store.find_run("latest").id, 0))
    assert store.find_run("latest").reason.startswith("openai:gpt-5-mini: it ended on 11 December 2026")


async def test_one_that_goes_in_the_middle_of_a_run_stops_its_arm_alone(write_suite, store, model_server):
    state = await model_server(models=("gpt-5-mini", "another"), latency=0.002)
    suite = pipeline.load(
        write_suite(targets=["openai:gpt-5-mini", {"id": "other", "target": "openai:another"}], cases=numbered(MANY),
                    scorer="contains", concurrency=2)
    )  # fmt: skip
    run = await pipeline.arun(suite, store=store, watch=gone_after(20, state))
    arms = {arm.target: arm for arm in run.summary().arms}
    assert run.status == "incomplete"
    assert "openai:gpt-5-mini: it ended on 11 December 2026; its successor is gpt-5.6-terra" in run.record.reason
    assert 3 <= arms["openai:gpt-5-mini"].failed <= 3 + 20  # those that were under way, too
    assert arms["openai:gpt-5-mini"].scored > 0 and arms["openai:gpt-5-mini"].waiting > MANY / 2
    assert arms["other"].scored == MANY


async def test_a_judge_that_is_gone(run_suite, model_server):
    await model_server(models=("another",))
    with pytest.raises(
        TargetUnusableError, match=r"the judge .* \(it ended on 11 December 2026; its successor is gpt-5"
    ):
        await run_suite(judge={"target": "openai:gpt-5", "temperature": 0}, scorer="llm_judge", cases=numbered(20))


async def test_a_judge_that_goes_in_the_middle_of_a_run(write_suite, store, model_server):
    verdict = '{"reasoning": "good", "score": 10}'
    state = await model_server(models=("gpt-5",), answer=verdict, latency=0.002)
    suite = pipeline.load(
        write_suite(judge={"target": "openai:gpt-5", "temperature": 0}, scorer="llm_judge", cases=numbered(MANY),
                    concurrency=2, retry={"attempts": 1})
    )  # fmt: skip
    run = await pipeline.arun(suite, store=store, watch=gone_after(10, state))
    assert run.status == "incomplete" and "it ended on 11 December 2026; its successor is" in run.record.reason
    assert run.summary().arms[0].waiting > MANY / 2


def test_three_in_a_row_that_say_so_are_enough_and_one_answer_starts_anew():
    patience = Patience(concurrency=4)
    assert [patience.failed("a", gone=True) for _ in range(2)] == [False, False]
    patience.succeeded("a")
    assert [patience.failed("a", gone=True) for _ in range(3)] == [False, False, True]
    assert not patience.failed("b")
