"""Trials that workers carry out: the same results as in one process, whatever happens to the workers."""

import asyncio
import random
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.billing import PRICE
from benchmarks.limiter import Simulation, in_virtual_time
from fairtrial.config import RunOptions
from fairtrial.core.money import Cost
from fairtrial.engine.budget import Budget, Need
from fairtrial.engine.cluster.leases import Lease, LeasedBudget, portion
from fairtrial.engine.cluster.messages import LimitShare, Use
from fairtrial.engine.cluster.shares import LeasedLimiter, SharedLimit, fair_shares
from fairtrial.engine.cluster.worker import Worker
from fairtrial.engine.limits import Limiter
from fairtrial.store.ledger import charged
from fairtrial.workflows.resume import arescore, aresume
from tests.conftest import numbered
from tests.engine.test_budget import PRICES, QUICK, always, books  # noqa: F401
from tests.engine.test_session import interrupted_after
from tests.workers import WorkersHere

SEEDED = {
    "target": "mock:echo",
    "options": {"jitter_ms": 3, "faults": {"500": 0.1, "429": 0.1, "empty": 0.1, "refused": 0.05}, "seed": 5},
}


@pytest.fixture
def workers(monkeypatch):
    """Have runs carried out by workers here."""

    def use(**options):
        backend = WorkersHere(**options)
        monkeypatch.setattr("fairtrial.engine.session.backend_of", lambda where: backend)
        return backend

    yield use
    monkeypatch.undo()


def told(run):
    """What a run says of every trial, without what differs from run to run."""
    fields = (
        *("trial_id", "case_id", "arm", "repeat", "answer", "score", "notes", "details", "attempts", "tried"),
        *("failure_kind", "failure_message", "unscored_kind", "unscored_message", "finish_reason", "completion_tokens"),
    )
    return sorted(tuple(str(getattr(trial, name)) for name in fields) for trial in run.trials())


SUITE = {
    "targets": [SEEDED, {"id": "second", **SEEDED}],
    "cases": [
        *numbered(25, "Question"),
        {"id": "talk", "turns": ["one", "two", "three"], "expected": "three"},
    ],
    "judge": {"target": "mock:judge", "options": {"verdict": {"marks": {"Question 1": 9}, "otherwise": 4}}},
    "scorer": {"type": "all_of", "scorers": ["contains", "llm_judge"]},
    "repeats": 2,
    "retry": QUICK,
    "concurrency": 4,
}


@pytest.mark.slow
async def test_workers_give_the_same_results_as_one_process(run_suite, workers, monkeypatch):
    alone = await run_suite(**SUITE)
    backend = workers(most=3)
    together = await run_suite(**SUITE)
    assert len(backend.links) == 3 and all(link.worker is not None for link in backend.links)
    assert told(together) == told(alone) and together.status == alone.status
    kinds = {trial.failure_kind for trial in together.trials()}
    assert "refused" in kinds and None in kinds  # the comparison is of something


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_lost_workers_lose_and_double_nothing(run_suite, workers, store, seed):
    alone = await run_suite(**SUITE)
    backend = workers(most=3, lose=0.02, seed=seed)
    together = await run_suite(**SUITE)
    assert backend.lost >= 3
    assert told(together) == told(alone) and together.status == alone.status
    with store.reading() as connection:
        for table in ("trials", "scores"):
            columns = "case_position, arm_position, repeat"
            doubled = f"select 1 from {table} where run_id = '{together.id}' group by {columns} having count(*) > 1"
            assert connection.exec_driver_sql(doubled).fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize("lose", [0.0, 0.05])
async def test_the_budget_is_hard_for_all_workers_together(run_suite, workers, books, store, lose):  # noqa: F811
    backend = workers(most=4, lose=lose, seed=1)
    keys = {
        "targets": ["openai:m"], "scorer": "boolean", "prices": PRICES, "params": {"max_tokens": 20}, "retry": QUICK,
        "concurrency": 8, "cases": numbered(300), "budget_usd": 60 * 100 * PRICE,
    }  # fmt: skip
    run = await run_suite(**keys)
    assert run.status == "incomplete" and "budget" in (run.record.reason or "")
    assert books.usd <= keys["budget_usd"] + 1e-9
    assert books.usd <= charged(store, run.id) + 1e-9
    assert charged(store, run.id) <= keys["budget_usd"] + 1e-9
    if not lose:  # nothing is left that would have been enough for another call
        assert charged(store, run.id) == pytest.approx(books.usd)
        assert keys["budget_usd"] - books.usd < 200 * PRICE
    assert len(backend.links) >= 4


async def test_never_more_calls_at_a_time_than_the_suite_says(run_suite, workers, model_server):
    server = await model_server(latency=0.005)
    workers(most=4)
    run = await run_suite(targets=["openai:m"], cases=numbered(60), concurrency=3, retry=QUICK)
    assert run.status == "completed"
    assert server.most_open <= 3


async def test_a_run_that_was_interrupted_goes_on_elsewhere(run_suite, workers, store, monkeypatch):
    workers(most=2)
    suite = {**SUITE, "targets": [{**SEEDED, "options": {"latency_ms": 2}}]}
    from fairtrial import pipeline

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "arun", _watched(pipeline.arun, interrupted_after(20)))
        run = await run_suite(**suite)
    assert run.status == "interrupted"
    done = answers(run)
    assert len(done) >= 20
    monkeypatch.setattr("fairtrial.engine.session.backend_of", lambda where: None)
    run = await aresume(run.id, store=store)
    assert run.status == "completed" and len(list(run.trials())) == 52
    assert done.items() <= answers(run).items()


def answers(run):
    return {
        (trial.case_id, trial.arm, trial.repeat): trial.answer for trial in run.trials() if trial.answer is not None
    }


def _watched(arun, watch):
    async def run(suite, **keywords):
        return await arun(suite, watch=watch, **keywords)

    return run


async def test_stored_answers_are_scored_again_by_workers(run_suite, workers, store):
    run = await run_suite(targets=["mock:echo"], cases=numbered(30, "Question"), scorer="exact")
    backend = workers(most=2)
    again = await arescore(run.id, scorer={"type": "contains"}, store=store)
    assert backend.links and {trial.score for trial in again.trials()} == {1.0}


async def test_a_trial_that_ends_every_worker_fails_alone(run_suite, workers):
    backend = workers(most=2)
    collect = backend.start

    def start(share):
        link = collect(share)
        deliver = link.deliver

        async def deadly(orders):
            await deliver(orders)
            if any("Question 7?" in task.get_coro().cr_frame.f_locals["assignment"].case.input
                   for task in link.worker._trials.values() if task.get_coro().cr_frame):  # fmt: skip
                link.kill()

        link.deliver = deadly
        return link

    backend.start = start
    run = await run_suite(
        targets=[{"target": "mock:echo", "options": {"latency_ms": 2}}],
        cases=numbered(20, "Question"),
        scorer="contains",
    )
    failed = [trial for trial in run.trials() if trial.failure_kind]
    assert [(trial.case_id, trial.failure_kind) for trial in failed] == [("q7", "crashed")]
    assert "worker processes in a row ended" in failed[0].failure_message
    assert sum(trial.score == 1.0 for trial in run.trials()) == 19


async def test_files_and_cached_answers_come_from_the_driver(run_suite, workers, tmp_path):
    (tmp_path / "note.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    keys = {"cases": [{"input": "What?", "attach": ["note.png"], "expected": "What?"}], "scorer": "contains"}
    workers(most=2)
    first = await run_suite(**keys)
    again = await run_suite(RunOptions(cache=True), **keys)
    assert [run.status for run in (first, again)] == ["completed"] * 2
    assert [trial.cached for trial in again.trials()] == [True]


async def test_a_worker_that_cannot_work_stops_the_run_with_its_reason(run_suite, workers, monkeypatch):
    workers(most=2)
    monkeypatch.setattr("fairtrial.engine.cluster.worker.own_version", lambda: "0.0.1")
    from fairtrial.core.errors import FairtrialError

    with pytest.raises(FairtrialError, match="install the same version"):
        await run_suite(cases=numbered(3))


# -- shares ----------------------------------------------------------------------------------------


@given(st.integers(0, 40), st.lists(st.integers(0, 15), min_size=1, max_size=12))
def test_fair_shares(width, wants):
    wanted = dict(enumerate(wants))
    shares = fair_shares(width, wanted, order=lambda worker: worker)
    assert all(0 <= shares[worker] <= wanted[worker] for worker in wanted)
    assert sum(shares.values()) == min(width, sum(wants))
    for worker in wanted:
        if shares[worker] < wanted[worker]:  # who gets less than wanted has no less than anybody else, but for one
            assert all(shares[other] <= shares[worker] + 1 for other in wanted)


@pytest.mark.slow
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=60), st.randoms())
def test_calls_in_flight_never_exceed_the_limit(most, steps, luck):
    """Workers whose orders arrive late, in order, use no more than the limit together."""

    async def play():
        shared = SharedLimit(Limiter(most))
        limiters = {n: LeasedLimiter(100, lambda: None) for n in range(4)}
        mail = {n: [] for n in limiters}
        busy = dict.fromkeys(limiters, 0)
        wants = dict.fromkeys(limiters, 0)
        for worker, want in steps:
            wants[worker] = want
            if luck.random() < 0.2:
                shared.limiter.throttled(None)
                shared.limiter._closed_until = shared.limiter._last_cut = float("-inf")
            for n in limiters:
                if mail[n] and luck.random() < 0.6:
                    limiters[n].apply(mail[n].pop(0))
                if busy[n] and luck.random() < 0.5:
                    busy[n] -= 1
                while busy[n] < min(limiters[n].width, wants[n]):
                    busy[n] += 1
                assert sum(busy.values()) <= most
                use = Use(limiters[n]._share.number, busy[n], max(0, wants[n] - busy[n]))
                if luck.random() < 0.7:
                    shared.update(n, use)
            for n, share in shared.changes().items():
                mail[n].append(share)

    asyncio.run(play())


async def test_workers_take_turns_where_there_is_less_than_one_call_for_each():
    shared, begun, slots = SharedLimit(Limiter(2)), dict.fromkeys(range(6), 0), dict.fromkeys(range(6), LimitShare(0))
    for _ in range(120):
        for worker, share in slots.items():
            begun[worker] += share.slots
            shared.update(worker, Use(share.number, share.slots, 3, begun[worker]))
        for worker in slots:  # all calls have ended
            shared.update(worker, Use(slots[worker].number, 0, 4, begun[worker]))
        slots |= shared.changes()
    assert min(begun.values()) > 0 and max(begun.values()) - min(begun.values()) <= 3


# -- leases ----------------------------------------------------------------------------------------


class Cluster:
    """A budget, and workers that were lent parts of it."""

    def __init__(self, count):
        self.budget, self.spent = Budget(1.0), 0.0
        self.leases = [Lease(self.budget) for _ in range(count)]
        self.purses = [LeasedBudget(partial(self.grant, number), int, limited=True) for number in range(count)]

    async def grant(self, number, need):
        extra = partial(portion, workers=len(self.leases))
        reserving = asyncio.ensure_future(self.budget.reserve(need, extra))
        await asyncio.sleep(0)
        if self.budget.short:
            for purse, lease in zip(self.purses, self.leases, strict=True):
                purse.tighten()
                lease.update(purse.report())
        usd = await reserving
        if usd is not None:
            self.leases[number].grant(usd)
            self.purses[number].arrived(usd)
        return usd

    async def call(self, number, most, share):
        reserved = await self.purses[number].reserve(Need(most))
        if reserved is not None:
            await asyncio.sleep(0)
            self.spent += most * share
            self.purses[number].settle(reserved, Cost(known=most * share, charged=most * share))
            self.leases[number].update(self.purses[number].report())


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0.001, 0.3), st.floats(0, 1)), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_money_that_is_lent_stays_within_the_budget(calls, count, seed):
    """Whoever is lost: spent is never more than charged, charged never more than the limit, and nobody waits."""
    luck = random.Random(seed)

    async def play():
        cluster = Cluster(count)
        async with asyncio.timeout(240):
            await asyncio.gather(*(cluster.call(luck.randrange(count), most, share) for most, share in calls))
        cluster.leases[0].lost(unknown=False)
        for purse, lease in zip(cluster.purses[1:], cluster.leases[1:], strict=True):
            lease.update(purse.report(last=True))
        budget = cluster.budget
        assert cluster.spent <= budget.spent + 1e-9 and budget.spent <= 1.0 + 1e-9
        assert budget._reserved == 0 and budget._calls == 0

    asyncio.run(play())


async def test_a_target_of_unknown_cost_first_runs_alone_in_the_whole_cluster():
    budget = Budget(1.0)
    first = await budget.reserve(Need(target="agent", factor=4, capped=True))
    assert first == 1.0
    second = asyncio.create_task(budget.reserve(Need(target="agent", factor=4, capped=True)))
    await asyncio.sleep(0)
    assert not second.done()
    budget.note_cost("agent", 0.1)
    budget.settle(first, Cost(known=0.1, charged=0.1))
    assert await second == pytest.approx(0.4)


@pytest.mark.simulation
def test_one_limit_is_stable_and_fair_for_many_workers():
    """A short version of `benchmarks/limiter.py`, which has a thousand workers."""
    few = in_virtual_time(Simulation(workers=60, limit=25, capacity=10**6, seconds=60.0).run())
    assert few.most <= 25 and few.fairness > 0.97 and few.fewest > 0  # although there is less than one call for each
    throttled = in_virtual_time(Simulation(workers=60, limit=200, capacity=50, seconds=120.0, late=15, lost=10).run())
    assert throttled.used > 0.75 and throttled.refused < 0.05 and throttled.fairness > 0.95


@pytest.mark.parametrize(("arrived", "given_back"), [(0.5, [0.5]), (None, [])])
async def test_money_that_arrives_as_its_call_is_cancelled_is_given_back(arrived, given_back):
    reply, unclaimed = asyncio.get_running_loop().create_future(), []
    worker = SimpleNamespace(ask=lambda *_: reply, _budget=SimpleNamespace(unclaimed=unclaimed.append))
    asking = asyncio.create_task(Worker._ask_for_money(worker, Need()))
    await asyncio.sleep(0)
    if arrived is not None:
        reply.set_result(arrived)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert unclaimed == given_back
