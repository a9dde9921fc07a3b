"""The engine: nothing lost, nothing asked twice, no failure a score, limits kept."""

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.config import RunOptions
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.errors import FairtrialError, InterruptedWorkError, TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.money import Cost
from fairtrial.core.settings import PriceSpec, RetrySpec
from fairtrial.engine import ladder
from fairtrial.engine.budget import Budget, Need
from fairtrial.engine.limits import Limiter
from fairtrial.engine.retry import Retries
from fairtrial.providers import streamed, transport
from fairtrial.providers.prices import FREE, find_price
from fairtrial.store.ledger import charged
from fairtrial.workflows.resume import arescore, aresume
from tests.conftest import numbered

QUICK = {"wait": 0.01, "max_wait": 0.1, "empty_wait": 0.01}


def interrupted_after(count: int):
    """A watcher that presses Ctrl-C after so many trials."""

    @asynccontextmanager
    async def watch(engine):
        async def wait():
            while engine.progress.done < count:
                await asyncio.sleep(0.005)
            engine.interrupt()

        task = asyncio.create_task(wait())
        yield
        await task

    return watch


async def test_every_entry_of_the_plan_is_answered_once(run_suite):
    run = await run_suite(
        targets=["mock:echo", {"id": "b", "target": "mock:echo"}],
        conditions={"x": {}, "y": {"system": "S"}},
        repeats=3,
        cases=numbered(7),
    )
    trials = list(run.trials())
    assert len(trials) == 7 * 4 * 3
    assert len({(t.case_id, t.arm, t.repeat) for t in trials}) == len({t.trial_id for t in trials}) == 84
    assert run.status == "completed"


async def test_arms_rest_on_per_case_means(run_suite):
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:x", "options": {"answers": {"a": ["yes", "no"], "b": "yes"}}}],
        scorer="boolean",
        repeats=2,
        cases=[{"id": "a", "input": "q", "expected": "yes", "weight": 3}, {"id": "b", "input": "q", "expected": "yes"}],
    )
    (arm,) = run.arms
    assert arm.aggregate.mean == pytest.approx((3 * 0.5 + 1 * 1.0) / 4)
    assert (arm.aggregate.count, arm.aggregate.total_weight, arm.trials) == (2, 4.0, 4)


@pytest.mark.slow
async def test_faults_of_every_kind(run_suite, model_server):
    """5 % 429, 2 % 500, 1 % resets in mid-stream, 1 % empty answers, a few hangs: the run ends with every trial."""
    state = await model_server(
        faults={"429": 0.05, "500": 0.02, "reset": 0.01, "empty": 0.01, "hang": 0.004, "blank": 0.01},
        retry_after=0.01,
        latency=0.002,
    )
    run = await run_suite(
        targets=["openai:m"], scorer="boolean", cases=numbered(1000), concurrency=50, timeout=20, retry=QUICK
    )
    assert sum(state.faults.values()) > 60 and state.faults["hang"] > 0
    trials = list(run.trials())
    assert len(trials) == 1000
    assert run.status == "completed", run.summary().failures
    assert all(trial.score == 1.0 for trial in trials)
    assert state.answered.total() == 1000  # nobody was asked again after an answer


@pytest.mark.slow
async def test_failures_that_stay_have_reasons_and_are_no_scores(run_suite, model_server):
    state = await model_server(faults={"500": 0.5, "429": 0.3}, retry_after=0.0)
    run = await run_suite(
        targets=["openai:m"], scorer="boolean", cases=numbered(60), concurrency=3, retry={**QUICK, "attempts": 2}
    )
    summary = run.summary()
    (arm,) = summary.arms
    assert run.status == "incomplete"
    assert arm.failed > 5 and arm.scored > 5 and arm.failed + arm.scored == 60
    assert arm.aggregate.mean == 1.0 and arm.aggregate.count == arm.scored
    assert all(t.failure_message and t.score is None and t.attempts == 2 for t in run.trials() if t.status == "failed")
    assert sum(count for _, _, count in summary.failures) == arm.failed

    state.behaviour.faults = {}
    before = state.calls.total()
    run = await aresume(run.id, store=run.store, mode="retry")
    assert run.status == "completed"
    assert state.calls.total() - before == arm.failed
    retried = [t for t in run.trials() if t.attempts == 3]
    assert len(retried) == arm.failed


async def test_an_answer_that_stays_empty_is_an_answer(run_suite, model_server):
    state = await model_server(faults={"empty": 1})
    run = await run_suite(targets=["openai:m"], cases=numbered(1), retry=QUICK)
    (trial,) = run.trials()
    assert (trial.status, trial.answer, trial.score, trial.attempts) == ("scored", "", 0.0, 3)
    assert trial.tried == ["empty answer", "empty answer"]
    assert state.calls.total() == 3


async def test_a_stream_that_breaks_is_asked_again_without_a_stream(run_suite, model_server):
    state = await model_server(refuse_stream=True)
    run = await run_suite(targets=["openai:m"], scorer="boolean", cases=numbered(3), retry=QUICK)
    assert run.status == "completed"
    assert [trial.attempts for trial in run.trials()] == [2, 2, 2]
    assert state.bodies[-1].get("stream") is None


async def test_hangs_end_with_a_reason(run_suite, model_server):
    await model_server(faults={"hang": 1})
    run = await run_suite(targets=["openai:m"], cases=numbered(2), timeout=0.05, retry=QUICK)
    assert [(t.failure_kind, t.attempts) for t in run.trials()] == [("timeout", 2)] * 2
    assert "no answer within 0.05 s" in next(run.trials()).failure_message


async def test_waiting_is_not_latency(run_suite, model_server, monkeypatch):
    now = [0.0]
    waited = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(ladder, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    for module in (transport, streamed):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    await model_server(faults={"429": 1}, first_only=True, retry_after=3)
    run = await run_suite(targets=["openai:m"], cases=numbered(1))
    (trial,) = run.trials()
    assert waited == [3] and trial.waited_ms == 3000 and trial.latency_ms == 0


async def test_concurrency_is_kept(run_suite, model_server):
    state = await model_server(latency=0.01)
    await run_suite(targets=["openai:m", {"id": "n", "target": "openai:n"}], cases=numbered(40), concurrency=7)
    assert state.most_open == 7


@pytest.mark.slow
async def test_a_wrong_key_stops_the_run_with_a_sentence(run_suite, model_server, store):
    state = await model_server(key="the-right-key", latency=0.01)
    with pytest.raises(TargetUnusableError, match="its key was rejected") as caught:
        await run_suite(targets=["openai:m"], cases=numbered(500))
    assert "sk-test-key-0001" not in str(caught.value) and "${OPENAI_API_KEY}" in str(caught.value)
    assert state.calls.total() == 0
    record = store.find_run("latest")
    assert record.status == "incomplete"

    state.behaviour.key = None
    run = await aresume("latest", store=store)
    assert run.status == "completed" and len(list(run.trials())) == 500


@pytest.mark.slow
async def test_a_key_that_is_rejected_in_the_middle_of_a_run_loses_nothing(write_suite, model_server, store):
    """It worked until then, so its trials fail like any others: the run ends by itself, and can go on later."""
    state = await model_server(latency=0.002)

    @asynccontextmanager
    async def revoked_later(engine):
        async def wait():
            while engine.progress.done < 20:
                await asyncio.sleep(0.005)
            state.behaviour.key = "another-key"

        task = asyncio.create_task(wait())
        yield
        await task

    suite = pipeline.load(write_suite(targets=["openai:m"], cases=numbered(200), concurrency=2))
    run = await pipeline.arun(suite, store=store, watch=revoked_later)  # nothing is raised
    answered = sum(trial.status == "scored" for trial in run.trials())
    assert run.status == "incomplete" and 20 <= answered < 200
    assert "trials all failed (HTTP 401" in run.record.reason
    state.behaviour.key = None
    run = await aresume("latest", store=store)
    run = await aresume(run.id, store=store, mode="retry")
    assert run.status == "completed" and sum(trial.status == "scored" for trial in run.trials()) == 200


@pytest.mark.slow
async def test_a_wrong_model_stops_the_run_but_loses_nothing(run_suite, model_server, store):
    await model_server(models=("right",), latency=0.01)
    with pytest.raises(TargetUnusableError, match="there is no such model"):
        await run_suite(targets=["openai:right", "openai:wrong"], cases=numbered(300))
    rows = list(store.trial_rows(store.find_run("latest").id, 0))
    assert rows and all(row["failure_kind"] is None for row in rows)


@pytest.mark.slow
async def test_a_server_that_dies_does_not_keep_anybody_waiting(run_suite, model_server):
    await model_server(faults={"500": 1})
    run = await run_suite(targets=["openai:m"], cases=numbered(2000), retry={**QUICK, "attempts": 1})
    assert run.status == "incomplete" and "trials all failed" in run.record.reason
    assert 20 <= len(list(run.trials())) < 200


@pytest.mark.slow
async def test_a_run_resumes_where_it_was_interrupted(write_suite, store, model_server):
    state = await model_server(latency=0.01)
    suite = pipeline.load(write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(200), concurrency=10))

    run = await pipeline.arun(suite, store=store, watch=interrupted_after(60))
    assert run.status == "interrupted"
    stored = {trial.case_id for trial in run.trials()}
    assert 60 <= len(stored) < 200
    asked = state.calls.copy()
    run = await aresume("latest", store=store)
    assert run.status == "completed" and len(list(run.trials())) == 200
    twice = {prompt for prompt in asked if state.calls[prompt] > asked[prompt]}
    assert not {f"Question {name[1:]}?" for name in stored} & twice


@pytest.mark.slow
async def test_answers_without_a_score_are_scored_without_asking(run_suite, model_server, store):
    from sqlalchemy import delete

    from fairtrial.store import schema

    state = await model_server()
    run = await run_suite(targets=["openai:m"], scorer="boolean", cases=numbered(20))
    with store.engine.begin() as connection:
        connection.execute(delete(schema.scores).where(schema.scores.c.case_position < 15))
    assert run.summary().arms[0].waiting == 15
    run = await aresume(run.id, store=store)
    assert run.status == "completed" and state.calls.total() == 20


@pytest.mark.slow
async def test_rescoring_asks_nobody_and_keeps_the_old_scores(run_suite, model_server, store):
    state = await model_server(answer="The answer is 42.")
    run = await run_suite(targets=["openai:m"], scorer="exact", cases=numbered(5))
    before = run.summary().arms[0].aggregate.mean
    run = await arescore(run.id, scorer={"type": "numeric"}, store=store)
    assert run.summary().arms[0].aggregate.mean == 1.0 and before < 1.0
    assert state.calls.total() == 5
    assert {t.scorer for t in run.trials()} == {"numeric"}
    assert len(list(store.trial_rows(run.id, 0))) == 5
    with pytest.raises(FairtrialError, match="did you mean"):
        await arescore(run.id, scorer={"type": "numerc"}, store=store)


@pytest.mark.slow
async def test_interrupted_rescoring_changes_nothing_and_goes_on(run_suite, store, monkeypatch):
    from fairtrial.core.score import Score
    from fairtrial.scorers.exact import Exact

    calls, blocked = 0, True

    async def slow(self, context):
        nonlocal calls
        calls += 1
        if blocked and calls > 6:
            await asyncio.Event().wait()  # until somebody presses Ctrl-C
        return Score(value=0.5)

    monkeypatch.setattr(Exact, "score", slow)
    run = await run_suite(scorer="boolean", cases=numbered(40, "Question"))
    spec = {"type": "exact"}

    with pytest.raises(InterruptedWorkError):
        await arescore(run.id, scorer=spec, store=store, watch=interrupted_after(5))
    found = Run.find(run.id, store)
    assert found.status == "completed" and found.arms[0].aggregate.mean == 1.0
    done = len([row for row in store.trial_rows(run.id, 1) if row["score_value"] is not None])
    assert 5 <= done <= 6
    blocked = False
    run = await arescore(run.id, scorer=spec, store=store)
    assert run.record.scoring == 1 and run.arms[0].aggregate.mean == 0.5 and run.arms[0].scored == 40


@pytest.mark.slow
async def test_one_run_one_process(run_suite, store):
    run = await run_suite()
    store.set_run(run.id, status="interrupted")
    with store.lease(run.id), pytest.raises(FairtrialError, match="still running"):
        await aresume(run.id, store=store)


@pytest.mark.slow
async def test_the_cache_serves_the_same_trial_and_no_other_repeat(run_suite, model_server):
    state = await model_server()
    first = await run_suite(targets=["openai:m"], cases=numbered(5), repeats=2)
    assert state.calls.total() == 10  # a repeat is never served from another repeat
    cached = await run_suite(RunOptions(cache=True), targets=["openai:m"], cases=numbered(5), repeats=3)
    assert state.calls.total() == 15
    assert sum(trial.cached for trial in cached.trials()) == 10
    assert [t.answer for t in first.trials()] == [t.answer for t in cached.trials() if t.repeat <= 2]
    await run_suite(RunOptions(cache=True), targets=["openai:m"], cases=numbered(5), params={"temperature": 0})
    assert state.calls.total() == 20
    await run_suite(targets=["openai:m"], cases=numbered(5))
    assert state.calls.total() == 25  # without being asked to, nothing is cached


async def test_seeds_move_on_with_repeats(run_suite, model_server):
    state = await model_server()
    await run_suite(targets=["openai:m"], cases=numbered(1), repeats=3, params={"seed": 10}, concurrency=1)
    assert [body["seed"] for body in state.bodies] == [10, 11, 12]


async def test_unscored_is_no_score(run_suite):
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:x", "options": {"answer": "a" * 40 + "b"}}],
        cases=[
            {"id": "bad", "input": "q", "expected": r"(a|aa)+$", "scorer": {"type": "regex", "timeout": 0.05}},
            {"id": "good", "input": "q", "expected": "aab"},
        ],
        scorer={"type": "boolean", "words": False},
    )
    (arm,) = run.summary().arms
    assert (arm.scored, arm.unscored, arm.failed, arm.coverage) == (1, 1, 0, 0.5)
    assert arm.aggregate.mean == 1.0 and run.status == "incomplete"
    assert run.summary().failures == [("timeout", "pattern timed out after 0.05 s", 1)]


class TestBudget:
    PRICES = {"openai:m": {"input": 1000.0, "output": 1000.0}}  # 0.001 USD a token

    @pytest.mark.slow
    async def test_it_is_never_exceeded_and_the_run_can_go_on(self, run_suite, model_server, store):
        state = await model_server(answer="x" * 36, latency=0.005)  # 10 completion tokens, prompt 3: 0.013 USD
        keys = {
            "targets": ["openai:m"],
            "cases": numbered(100),
            "prices": self.PRICES,
            "params": {"max_tokens": 20},
            "concurrency": 20,
        }
        run = await run_suite(budget_usd=0.5, **keys)
        spent = charged(store, run.id)
        assert 0.3 < spent <= 0.5
        assert run.status == "incomplete" and "budget of $0.5 reached" in run.record.reason
        assert not any(trial.failure_kind for trial in run.trials())
        answered = state.answered.total()
        run = await aresume(run.id, store=store, overrides={"budget_usd": 10.0})
        assert run.status == "completed" and state.answered.total() == 100 > answered
        assert charged(store, run.id) == pytest.approx(1.3, abs=0.1)

    async def test_attempts_that_failed_are_on_the_bill(self, run_suite, model_server):
        await model_server(faults={"empty": 1}, first_only=True)
        run = await run_suite(targets=["openai:m"], cases=numbered(1), prices=self.PRICES, retry=QUICK)
        (trial,) = run.trials()
        prompt, empty, full = 3, 1, len("The answer is 42.") // 4 + 1
        assert trial.cost_usd == pytest.approx((prompt + empty + prompt + full) * 0.001)

    async def test_money_set_aside_is_waited_for(self):
        budget = Budget(1.0)
        assert await budget.reserve(Need(0.9)) == 0.9
        waiting = asyncio.create_task(budget.reserve(Need(0.5)))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.9, Cost(charged=0.1))
        assert await waiting == 0.5
        budget.settle(0.5, Cost(charged=0.5))
        assert await budget.reserve(Need(2.0)) is None
        assert budget.exhausted and budget.spent == pytest.approx(0.6)


class TestPrices:
    def test_listed_prices(self):
        price = find_price(TargetSpec(id="x", kind="openai_api", provider="openai", model="gpt-5-mini"), {})
        assert price.cost(Usage(prompt=1_000_000, completion=0)) == pytest.approx(0.25)
        assert price.cost(Usage(prompt=1_000_000, cache_read=1_000_000)) == pytest.approx(0.025)

    def test_long_prompts_cost_more_where_the_provider_says_so(self):
        spec = TargetSpec(id="x", kind="anthropic_api", provider="anthropic", model="claude-sonnet-4-5")
        price = find_price(spec, {})
        assert price.cost(Usage(prompt=100_000)) == pytest.approx(0.3)
        assert price.cost(Usage(prompt=300_000)) == pytest.approx(1.8)
        assert price.most(300_000, 0) >= 1.8

    def test_own_prices_win_and_unknown_stays_unknown(self):
        spec = TargetSpec(id="x", kind="openai_api", provider="lab", model="m")
        assert find_price(spec, {}) is None
        assert (
            find_price(spec, {"lab:m": PriceSpec(input=1, output=2)}).cost(Usage(prompt=10**6, completion=10**6)) == 3
        )
        assert FREE.cost(Usage(prompt=10**6)) == 0

    def test_the_price_list_is_not_loaded_for_a_users_own_program(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
        for provider in ("python", "command"):
            spec = TargetSpec(id="x", kind=provider, provider=provider, model="agent:answer")
            assert find_price(spec, {}) is None


class TestRetries:
    def test_waits_grow_and_end(self):
        patience = Retries(RetrySpec(attempts=4, wait=1, max_wait=3))
        failure = Failure(kind="server", message="x", retryable=True)
        waits = [patience.wait(failure) for _ in range(4)]
        assert waits[3] is None
        assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2 and 1.5 <= waits[2] <= 3

    def test_retry_after_is_obeyed(self):
        patience = Retries(RetrySpec(max_wait=60))
        assert patience.wait(Failure(kind="rate_limited", message="", retryable=True, retry_after=7)) == 7
        assert patience.wait(Failure(kind="rate_limited", message="", retryable=True, retry_after=700)) == 60

    def test_what_would_fail_again_is_not_tried_again(self):
        for kind in ("refused", "auth", "model", "crashed"):
            assert Retries(RetrySpec()).wait(Failure(kind=kind, message="")) is None

    def test_empty_answers(self):
        patience = Retries(RetrySpec())
        assert [patience.wait(Answer(text=" \n")) for _ in range(3)] == [0.4, 0.8, None]
        assert Retries(RetrySpec()).wait(Answer(text="", finish_reason="length")) is None
        assert Retries(RetrySpec()).wait(Answer(text="x")) is None


class TestLimiter:
    async def test_it_narrows_after_a_429_and_widens_again(self):
        limiter = Limiter(100)
        limiter.throttled(None)
        assert limiter.width == 70
        limiter.throttled(None)
        assert limiter.width == 70  # one burst is one message
        for _ in range(10_000):
            limiter.succeeded()
        assert limiter.width == 100

    async def test_a_row_of_429s_closes_the_gate_for_everybody(self):
        limiter, started = Limiter(10), time.monotonic()
        for _ in range(3):
            limiter.throttled(0.2)
        async with limiter:
            assert time.monotonic() - started >= 0.19

    async def test_never_more_than_its_width_and_nobody_starves(self):
        limiter, busy, most, done = Limiter(5), 0, 0, 0

        async def call(number):
            nonlocal busy, most, done
            async with limiter:
                busy += 1
                most = max(most, busy)
                try:
                    await asyncio.sleep(0.001)
                finally:
                    busy -= 1
            done += 1

        tasks = [asyncio.create_task(call(n)) for n in range(200)]
        await asyncio.sleep(0.005)
        for task in tasks[::7]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most == 5
        assert done >= 200 - len(tasks[::7])

    async def test_calls_are_served_in_their_order_and_woken_once(self, monkeypatch):
        limiter, begun, futures = Limiter(5), [], 0
        loop = asyncio.get_running_loop()
        create_future = loop.create_future

        def count_futures():
            nonlocal futures
            futures += 1
            return create_future()

        async def call(number):
            async with limiter:
                begun.append(number)
                await answered.wait()
                await asyncio.sleep(0)  # all that hold a slot end in the same round of the loop

        answered = asyncio.Event()
        tasks = [asyncio.create_task(call(number)) for number in range(50)]
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "create_future", count_futures)
        answered.set()
        await asyncio.gather(*tasks)
        assert begun == list(range(50))
        assert futures <= 1  # that of `gather`

    async def test_who_is_cancelled_or_told_to_pause_passes_the_slot_on(self):
        limiter = Limiter(1)
        await limiter.__aenter__()
        given_up, paused, last = (asyncio.create_task(limiter.__aenter__()) for _ in range(3))
        await asyncio.sleep(0)
        await limiter.__aexit__()
        given_up.cancel()  # when the slot is its own already
        await asyncio.sleep(0)
        assert given_up.cancelled()
        started = time.monotonic()
        for _ in range(3):
            limiter.throttled(0.05)
        await asyncio.wait([paused, last], return_when=asyncio.FIRST_COMPLETED)
        assert time.monotonic() - started >= 0.04
        await limiter.__aexit__()
        await asyncio.wait_for(asyncio.gather(paused, last), 60)
        await limiter.__aexit__()
        assert limiter._busy == 0

    @pytest.mark.slow
    async def test_a_quota_that_is_gone_is_respected(self, run_suite, model_server):
        """A server with a quota of 50 calls per 0.3 s: few calls are wasted on 429s."""
        state = await model_server(latency=0.001, retry_after=0.3)
        window = {"start": 0.0, "left": 50}

        def quota(prompt):
            now = time.monotonic()
            if now - window["start"] > 0.3:
                window.update(start=now, left=50)
            window["left"] -= 1
            return None if window["left"] >= 0 else "429"

        state.fault = quota
        run = await run_suite(targets=["openai:m"], scorer="boolean", cases=numbered(200), concurrency=50)
        assert run.status == "completed"
        assert state.calls.total() < 500


async def test_unknown_costs_are_unknown_not_zero(run_suite, model_server):
    state = await model_server()
    run = await run_suite(targets=["lab:m"], providers={"lab": {"base_url": f"{state.address}/v1"}}, cases=numbered(2))
    assert run.arms[0].cost_usd is None
    assert all(trial.cost_usd is None for trial in run.trials())


async def test_plug_ins_that_break_break_nothing_else(run_suite, monkeypatch):
    from fairtrial.scorers.boolean import Boolean
    from fairtrial.targets.mock import Mock

    async def explode(self, thing):
        raise ValueError("plug-in bug")

    monkeypatch.setattr(Boolean, "score", explode)
    run = await run_suite(scorer="boolean")
    (trial,) = run.trials()
    assert (trial.status, trial.unscored_kind) == ("unscored", "crashed")
    monkeypatch.setattr(Mock, "ask", explode)
    run = await run_suite()
    (trial,) = run.trials()
    assert (trial.status, trial.failure_kind) == ("failed", "crashed")
    assert "ValueError: plug-in bug" in trial.failure_message


@pytest.mark.slow
async def test_runs_of_one_plan_share_it(run_suite, store):
    one, two = await run_suite(cases=numbered(3)), await run_suite(cases=numbered(3))
    assert one.record.plan_id == two.record.plan_id and one.id != two.id
    store.delete_run(one.id)
    assert len(list(two.trials())) == 3
    store.delete_run(two.id)
    with pytest.raises(FairtrialError, match="no run in this store"):
        store.find_run("latest")
