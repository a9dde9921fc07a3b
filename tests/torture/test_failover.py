"""A PostgreSQL server that is replaced by its copy in the middle of a run, and the copy lacks the last commits.

They had been reported as stored. The run writes them again from what it holds; what it does not hold any more it says, and
charges. By the ledger of the model server nothing is paid for that is not in the sums.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from fairtrial.store import Store, schema
from fairtrial.store.ledger import charged, spent
from tests import forks
from tests.conftest import numbered
from tests.postgres import Server, programs
from tests.torture.partition import Partition
from tests.torture.test_databases import stored
from tests.torture.test_waits import HANGS, Started

pytestmark = pytest.mark.slow
CASES, CONCURRENCY = 120, 4
PRICE = 0.0001  # USD per token
PRICES = {"openai:m": {"input": PRICE * 1e6, "output": PRICE * 1e6}}
FORGETFUL = f"""\
from fairtrial.store import commits
commits.HELD, commits._MOST = {{held}}
{forks.PROGRAM}
"""


class Pair(NamedTuple):
    """A primary server and its copy, and what is between them, and between a run and the primary."""

    primary: Server
    copy: Server
    stream: Partition
    near: Partition

    async def catches_up(self) -> None:
        """Wait until the copy has what the primary has."""
        (((there,),),) = (self.primary.execute("SELECT pg_current_wal_lsn()"),)
        behind = f"SELECT pg_last_wal_replay_lsn() >= '{there}'"
        while not (await asyncio.to_thread(self.copy.execute, behind))[0][0]:
            await asyncio.sleep(0.05)

    async def fail_over(self) -> None:
        """Have the copy take the primary's place, which dies."""
        self.near.cut()
        self.primary.kill()
        await asyncio.to_thread(self.copy.promote)
        self.near.heal(self.copy.url())


@asynccontextmanager
async def pair_of_servers() -> AsyncIterator[Pair]:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (apt install postgresql)")
    async with AsyncExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory(prefix="fairtrial-postgres-")) for _ in range(2)]
        primary, copy = (Server(Path(folder)) for folder in folders)
        await asyncio.to_thread(primary.create)
        Store(primary.url()).close()
        stream, near = [await stack.enter_async_context(Partition(primary.url())) for _ in range(2)]
        await asyncio.to_thread(copy.create_copy_of, primary, stream.url)
        try:
            yield Pair(primary, copy, stream, near)
        finally:
            for server in (primary, copy):
                if server.runs():
                    server.stop("immediate")


@pytest.fixture
def suite(write_suite: Callable[..., Path]) -> Path:
    keys = {"prices": PRICES, "params": {"max_tokens": 100}, "budget_usd": 500.0}
    path: Path = write_suite(
        targets=["openai:m"], scorer="boolean", cases=numbered(CASES), concurrency=CONCURRENCY, **keys
    )
    return path


async def stores(run: Started, url: str, state: Any, count: int) -> None:
    """Let the model answer so many calls, and wait until as many answers are stored."""
    state.release()
    state.hold(after=count)
    await run.until(partial(lambda: len(stored(url)) >= count))


def billed(state: Any) -> float:
    """What the model server would write on the bill."""
    return sum(
        PRICE * times * (len(prompt) // 4 + len(f"42: {prompt}") // 4 + 2) for prompt, times in state.answered.items()
    )


def check_sums(url: str, state: Any, exact: bool) -> None:
    store = Store(url, create=False)
    (run,) = store.runs()
    assert run.status == "completed" and len(stored(url)) == CASES
    rows = store.fetch_dicts(select(schema.trials))
    costs = spent(store, run.id)
    assert charged(store, run.id) >= billed(state) - 1e-9
    if exact:
        assert {row["attempts"] for row in rows} == {1} and set(state.answered.values()) == {1}
        assert costs.known == pytest.approx(sum(row["cost_usd"] for row in rows)) and not costs.unknown
        assert costs.charged == pytest.approx(costs.known)
    store.close()


HELD = {"all": (2**25, 10_000), "some": (2**16, 10_000), "nothing": (0, 10_000), "not even what is missing": (0, 8)}


@pytest.mark.parametrize("held", HELD)
async def test_a_copy_that_lacks_the_last_commits(campaign, held, suite, model_server):
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        async with pair_of_servers() as pair:
            program = FORGETFUL.format(held=HELD[held])
            state.hold(after=0)
            run = Started("run", suite, "--store", pair.near.url, folder=suite.parent, program=program)
            await run.until(state.calls.total)
            copied = chance.randrange(0, 40)
            await stores(run, pair.primary.url(), state, copied)
            await pair.catches_up()
            pair.stream.cut()
            await stores(run, pair.primary.url(), state, copied + chance.randrange(30, 60))
            reported = stored(pair.primary.url())
            await pair.fail_over()
            state.release()
            code = await run.ended(HANGS)
            url = pair.copy.url()
            if held == "all":
                assert code == 0, run.words
            elif code:
                assert code == 2 and run.words.count("error: the server of") == 1, run.words
                assert "was replaced by one that lacks" in run.words and "asks for them again" in run.words
                resumed = Started("resume", "latest", "--store", url, "--quiet", folder=suite.parent)
                assert await resumed.ended(HANGS) == 0, resumed.words
            assert held in ("all", "some") or code == 2
            assert reported.items() <= stored(url).items()
            check_sums(url, state, exact=held == "all")
        campaign.count(lost=0, undercharged=0, hung=0, tracebacks=0, replaced=1)


async def test_a_copy_that_lacks_that_the_run_was_taken(campaign, suite, model_server):
    """A run that is resumed, and the copy knows only its first session."""
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        state.hold(after=chance.randrange(10, 40))
        async with pair_of_servers() as pair:
            run = Started("run", suite, "--store", pair.near.url, folder=suite.parent)
            await run.until(lambda state=state: state.calls.total() >= 10 + CONCURRENCY)
            assert await run.interrupt() == 130, run.words
            await pair.catches_up()
            pair.stream.cut()
            before = len(stored(pair.primary.url()))
            resumed = Started("resume", "latest", "--store", pair.near.url, folder=suite.parent)
            state.release()
            await resumed.until(lambda before=before, pair=pair: len(stored(pair.primary.url())) > before + 20)
            reported = stored(pair.primary.url())
            await pair.fail_over()
            assert await resumed.ended(HANGS) == 0, resumed.words
            assert reported.items() <= stored(pair.copy.url()).items()
            check_sums(pair.copy.url(), state, exact=False)
        campaign.count(lost=0, undercharged=0, hung=0, tracebacks=0, replaced=1)


async def test_a_copy_that_lacks_the_run(campaign, suite, model_server):
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        state.hold(after=chance.randrange(1, 40))
        async with pair_of_servers() as pair:
            await pair.catches_up()
            pair.stream.cut()
            run = Started("run", suite, "--store", pair.near.url, folder=suite.parent)
            await run.until(lambda state=state: state.calls.total() >= CONCURRENCY)
            await pair.fail_over()
            state.release()
            assert await run.ended(HANGS) == 2, run.words
            (said,) = [line for line in run.said if line.startswith("error:")]
            assert "was replaced by one that lacks run" in said and said.endswith("run the suite again")
            again = Started("run", suite, "--store", pair.near.url, "--quiet", folder=suite.parent)
            assert await again.ended(HANGS) == 0, again.words
        campaign.count(hung=0, tracebacks=0, replaced=1)


async def test_a_server_that_comes_back_after_it_was_replaced(campaign, suite, model_server):
    """What would be written there would be lost: it counts as out of reach."""
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        async with pair_of_servers() as pair:
            copied = chance.randrange(1, 40)
            state.hold(after=copied)
            run = Started("run", suite, "--store", pair.near.url, folder=suite.parent)
            await stores(run, pair.primary.url(), state, copied)
            await pair.catches_up()
            before = stored(pair.primary.url())
            pair.near.cut()
            await asyncio.to_thread(pair.copy.promote)
            pair.near.heal(pair.copy.url())
            await stores(run, pair.copy.url(), state, copied + 20)
            pair.near.cut()
            pair.near.heal(pair.primary.url())
            state.release()
            await run.says("waiting: the database cannot be reached")
            pair.near.heal(pair.copy.url())
            assert await run.ended(HANGS) == 0, run.words
            assert stored(pair.primary.url()) == before
            check_sums(pair.copy.url(), state, exact=True)
        campaign.count(lost=0, undercharged=0, hung=0, tracebacks=0, replaced=1)


async def test_an_address_with_several_servers(campaign, suite, model_server):
    """The one that takes changes is found by itself; a copy that only reads is refused in one sentence."""
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.002, answer="42: {prompt}")
        async with pair_of_servers() as pair:
            hosts = f"127.0.0.1:{pair.copy.port},127.0.0.1:{pair.primary.port}"
            url = pair.primary.url().replace(f"127.0.0.1:{pair.primary.port}", hosts)
            copied = chance.randrange(1, 40)
            state.hold(after=copied)
            refused = Started("run", suite, "--store", pair.copy.url(), folder=suite.parent)
            await pair.catches_up()
            assert await refused.ended(HANGS) == 1 and "is read-only: give the address of the primary" in refused.words
            run = Started("run", suite, "--store", f"{url}?target_session_attrs=read-write", folder=suite.parent)
            await stores(run, pair.primary.url(), state, copied)
            await pair.fail_over()
            state.release()
            assert await run.ended(HANGS) == 0, run.words
            check_sums(pair.copy.url(), state, exact=True)
        campaign.count(lost=0, undercharged=0, hung=0, tracebacks=0, replaced=1)
