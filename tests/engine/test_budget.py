"""Money: what was charged beside what is known; a budget that holds whatever a server says and however a process ends."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.billing import PRICE, Books, start
from benchmarks.budget import torture
from fairtrial import pipeline
from fairtrial.config import RunOptions
from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.formatting import money
from fairtrial.core.money import Cost, total
from fairtrial.core.settings import PriceSpec, RetrySpec, Settings
from fairtrial.core.target import Target
from fairtrial.engine.budget import Budget, Need
from fairtrial.engine.ladder import Ladder
from fairtrial.engine.limits import Limiter
from fairtrial.providers.prices import find_price
from fairtrial.reports.json import document
from fairtrial.store.ledger import charged, ledger_row, spent
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.conftest import numbered
from tests.engine.test_session import interrupted_after

PRICES = {"openai:m": {"input": PRICE * 1e6, "output": PRICE * 1e6}}
QUICK = {"wait": 0.0, "max_wait": 0.0, "empty_wait": 0.0, "attempts": 3}


@pytest.fixture
async def books(monkeypatch):
    """A server that keeps its own books, with one fault for every call that is chosen from outside."""
    kept = Books(share=0.0, seed=1, answer="42")
    runner, address = await start(kept)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-books-0001")
    yield kept
    await runner.cleanup()


def always(books: Books, fault: str) -> None:
    books.fault = lambda: fault


async def costs_of(run_suite, **keys):
    run = await run_suite(
        targets=["openai:m"],
        scorer="boolean",
        prices=PRICES,
        params={"max_tokens": 20},
        retry=QUICK,
        concurrency=2,
        **keys,
    )
    return run, run.summary()


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fault", ["no usage", "negative usage", "absurd usage", "odd usage", "zero usage", "no answer", "no cost"]
)
async def test_what_a_server_does_not_say_is_unknown_and_charged_at_its_worst(run_suite, books, store, fault, stream):
    always(books, fault)
    run, summary = await costs_of(run_suite, cases=numbered(3), stream=stream)
    (arm,) = summary.arms
    assert run.status == "completed" and arm.scored == 3  # decoration is no reason to throw answers away
    assert arm.cost_usd is None and arm.cost.unknown == 3 and arm.cost.known == 0
    assert books.usd <= charged(store, run.id) < 3 * 0.2
    assert all(trial.cost_usd is None and trial.charged_usd > 0 for trial in run.trials())
    assert "unknown" in money(arm.cost)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["cut body", "bad utf-8", "reset", "cut stream", "error event", "unreadable 202"])
async def test_what_broke_after_it_was_sent_may_be_on_the_bill(run_suite, books, store, fault, stream):
    always(books, fault)
    run, summary = await costs_of(run_suite, cases=numbered(2), stream=stream)
    assert summary.arms[0].failed == 2 and books.calls == 6
    assert books.usd <= charged(store, run.id)
    assert summary.spent.usd is None and summary.spent.unknown == 6


async def test_a_negative_cost_is_not_believed(run_suite, books, store):
    always(books, "negative cost")
    run, summary = await costs_of(run_suite, cases=numbered(3))
    assert summary.arms[0].cost_usd == pytest.approx(books.usd) == pytest.approx(charged(store, run.id))


async def test_any_status_of_success_is_billed(run_suite, books, store):
    always(books, "201")
    run, summary = await costs_of(run_suite, cases=numbered(3))
    assert run.status == "completed" and summary.arms[0].cost_usd == pytest.approx(books.usd)
    assert charged(store, run.id) == pytest.approx(books.usd)


async def test_usage_of_nothing_buys_nothing(run_suite, books):
    always(books, "zero usage")
    run, summary = await costs_of(run_suite, cases=numbered(60), budget_usd=1.0, stream=False)
    assert run.status == "incomplete" and books.usd <= 1.0 and summary.spent.unknown == books.calls
    assert document(summary)["arms"][0]["cost_usd"] is None and document(summary)["arms"][0]["unknown_costs"] > 0


async def test_errors_before_any_work_are_free(run_suite, books):
    always(books, "500")
    _, summary = await costs_of(run_suite, cases=numbered(2))
    assert summary.spent == Cost() and summary.arms[0].failed == 2


async def test_one_unknown_attempt_does_not_hide_what_the_others_cost(run_suite, books):
    faults = iter(["cut body", None])
    books.fault = lambda: next(faults)
    run, summary = await costs_of(run_suite, cases=numbered(1), stream=False)
    (arm,) = summary.arms
    assert run.status == "completed" and arm.cost.unknown == 1 and arm.cost.known > 0
    assert money(arm.cost).startswith("≥ $")


async def test_calls_of_unknown_cost_count_when_a_run_goes_on(run_suite, books, store):
    always(books, "no usage")
    keys = {"cases": numbered(60), "budget_usd": 1.0, "stream": False}
    run, _ = await costs_of(run_suite, **keys)
    assert run.status == "incomplete" and books.usd <= 1.0
    calls = books.calls
    for _ in range(3):
        run = await aresume(run.id, store=store)
    assert books.calls == calls and books.usd <= 1.0 and "budget of $1 reached" in run.record.reason


async def test_negative_usage_buys_nothing(run_suite, books):
    always(books, "negative usage")
    run, _ = await costs_of(run_suite, cases=numbered(60), budget_usd=1.0, stream=False)
    assert run.status == "incomplete" and books.usd <= 1.0


async def test_calls_that_were_given_up_are_on_the_bill(write_suite, books, store):
    always(books, "slow")
    path = write_suite(
        targets=["openai:m"], prices=PRICES, params={"max_tokens": 20}, cases=numbered(40), budget_usd=5, concurrency=3
    )

    async def interrupt(engine):
        while books.calls < 3:
            await asyncio.sleep(0.005)
        engine.interrupt()

    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def watch(engine):
        task = asyncio.create_task(interrupt(engine))
        yield
        await task

    run = await pipeline.arun(pipeline.load(path), store=store, watch=watch)
    assert run.status == "interrupted" and books.calls == 3
    assert books.usd <= charged(store, run.id) < 3 * 0.3
    assert spent(store, run.id).unknown == 3 and not list(run.trials())


async def test_what_was_at_risk_in_a_crash_counts_as_spent(run_suite, books, store):
    run, _ = await costs_of(run_suite, cases=numbered(2), budget_usd=5)
    known = charged(store, run.id)
    store.write({"ledgers": [ledger_row(run.id, 0.7)]})  # as a process that was killed leaves it
    assert charged(store, run.id) == pytest.approx(known + 0.7)
    for _ in range(2):
        store.lease(run.id).release()
    assert charged(store, run.id) == pytest.approx(known + 0.7)
    assert spent(store, run.id).unknown == 1 and spent(store, run.id).known == pytest.approx(known)


@pytest.mark.slow
async def test_an_interrupted_run_and_its_resumption_cost_what_the_server_says(write_suite, books, store):
    path = write_suite(
        targets=["openai:m"], prices=PRICES, params={"max_tokens": 20}, cases=numbered(30), budget_usd=50, concurrency=1
    )
    run = await pipeline.arun(pipeline.load(path), store=store, watch=interrupted_after(10))
    run = await aresume(run.id, store=store)
    assert run.status == "completed"
    assert books.usd <= charged(store, run.id) and run.summary().spent.known <= books.usd + 1e-9


async def test_a_budget_needs_a_limit_on_replies(write_suite, books):
    from fairtrial.core.errors import FairtrialError

    path = write_suite(targets=["openai:gpt-5-mini"], params={"max_tokens": None}, budget_usd=1)
    with pytest.raises(FairtrialError, match="max_tokens"):
        pipeline.load(path, RunOptions())


class _Told(Target):
    """A target that answers with what a test says."""

    priced = True

    def __init__(self, result) -> None:
        super().__init__(TargetSpec(id="t", kind="x", provider="x", model="m"), None, Path())
        self.result = result

    async def ask(self, request):
        return self.result


async def _cost(result, limit=None) -> tuple[Cost, Budget]:
    settings = Settings(retry=RetrySpec(attempts=1, empty=0))
    target, budget = _Told(result), Budget(limit)
    price = find_price(target.spec, {"t": PriceSpec(input=1000.0, output=1000.0)})
    assert price is not None
    ladder = Ladder(target, settings, gate=Limiter(1), limiter=Limiter(1), budget=budget, price=price)
    outcome = await ladder.ask(Request(trial_id="t", case_id="c", input="hello", params={"max_tokens": 10}))
    return outcome.cost, budget


numbers = st.one_of(st.integers(-(2**70), 2**70), st.just(0))


@pytest.mark.slow
@given(
    usage=st.one_of(
        st.none(),
        st.builds(
            Usage, prompt=numbers, completion=numbers, cache_read=numbers, cache_write=numbers, reasoning=numbers
        ),
    ),
    told=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
)
def test_no_usage_makes_a_cost_negative_or_more_than_the_call_can_have_cost(usage, told):
    most = 0.001 * (len("hello") + 64 + 10)
    for result in (Answer(text="x", usage=usage, cost_usd=told), Failure(kind="stream", message="", usage=usage)):
        cost, budget = asyncio.run(_cost(result, limit=1.0))
        assert 0 <= cost.known <= cost.charged <= most + 1e-12
        assert cost.unknown == 0 or cost.charged == pytest.approx(most)
        assert budget.spent == cost.charged


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 0.3), st.floats(0, 1)), min_size=1, max_size=40))
def test_money_set_aside_keeps_nobody_waiting_for_ever(calls):
    """Sums of binary fractions leave residues; whoever waits is woken all the same."""

    async def spend() -> None:
        budget = Budget(1.0)

        async def call(most: float, share: float) -> None:
            reserved = await budget.reserve(Need(most))
            if reserved is not None:
                await asyncio.sleep(0)
                budget.settle(reserved, Cost(known=most * share, charged=most * share))

        async with asyncio.timeout(240):
            await asyncio.gather(*(call(most, share) for most, share in calls))
        assert budget.spent <= 1.0 + 1e-9

    asyncio.run(spend())


async def test_what_may_be_spent_is_on_record_first():
    kept: list[float] = []

    async def keep(usd: float) -> None:
        await asyncio.sleep(0)
        kept.append(usd)

    budget = Budget(10.0, keep=keep)
    at_risk = 0.0
    for _ in range(50):
        reserved = await budget.reserve(Need(0.1))
        assert reserved is not None
        at_risk += 0.1 if at_risk < 0.3 else 0
        assert kept[-1] >= 0.1
        budget.settle(reserved, Cost(known=0.05, charged=0.05))
        budget.recorded(Cost(known=0.05, charged=0.05))
    assert len(kept) == 1  # calls are much alike: the record is not written for each


async def test_money_whose_record_cannot_be_written_is_free_again():
    broken = True

    async def keep(usd: float) -> None:
        if broken:
            raise OSError("the disk is full")

    budget = Budget(1.0, keep=keep)
    with pytest.raises(OSError, match="full"):
        await budget.reserve(Need(0.8))
    broken = False
    second = asyncio.create_task(budget.reserve(Need(0.8)))
    await asyncio.sleep(0)
    assert not budget.short  # it would wait for ever: nobody settles what the first one reserved
    assert await second == 0.8


class Broken(Target):
    """Fails at a price that it names afterwards."""

    names_its_cost = True

    async def ask(self, request: Request) -> Failure:
        return Failure(kind="server", message="HTTP 500: out of order", retryable=True, cost_usd=0.6)


async def test_where_the_budget_ends_between_two_attempts_the_first_one_counts():
    """The trial was tried and paid for: its failure is kept, and not left for another session to pay again."""
    target = Broken(TargetSpec(id="t", kind="mock", provider="mock"), None, Path())
    budget = Budget(1.0)
    calls = Ladder(
        target, Settings(retry=RetrySpec(wait=0, attempts=3)), gate=asyncio.Semaphore(1), limiter=Limiter(1, 1),
        budget=budget, price=find_price(target.spec, {"t": PriceSpec(input=1, output=1)}),
    )  # fmt: skip
    outcome = await calls.ask(Request(trial_id="t", case_id="c", input="?"))
    assert (outcome.result.kind, outcome.attempts, outcome.tried) == ("server", 1, ("HTTP 500: out of order",))
    assert (outcome.cost.known, budget.spent, budget.exhausted) == (0.6, 0.6, True)


def test_costs_add_up():
    parts = [Cost(known=0.1, charged=0.1), Cost(charged=0.5, unknown=1)]
    assert total(parts) == Cost(known=0.1, charged=0.6, unknown=1)
    assert total(parts).usd is None and parts[0].usd == 0.1
    assert [money(Cost()), money(parts[0]), money(parts[1]), money(total(parts))] == ["0", "$0.1", "unknown", "≥ $0.1"]


@pytest.mark.slow
def test_the_budget_is_hard_under_faults_kills_and_resumes(tmp_path):
    """Some of what `python -m benchmarks.budget --runs 200` does."""
    endings = []
    for seed in (1000, 1001):
        folder = tmp_path / str(seed)
        folder.mkdir()
        endings.append(torture(seed, folder, forks.start_module))
        assert endings[-1].kept and endings[-1].charged and endings[-1].usd > 0, endings
    assert sum(ending.kills for ending in endings) and sum(sum(ending.faults.values()) for ending in endings), endings
