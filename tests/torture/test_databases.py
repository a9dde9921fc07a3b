"""PostgreSQL in trouble in the middle of a run: its disk is full, it takes no changes, it is slow.

It is waited for within limits, and the line says for what. Nothing is reported that is not stored; when the trouble is
over the run goes on, or `resume` completes it and buys nothing again that was stored.
"""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from fairtrial.store import Store, schema
from tests import forks
from tests.conftest import numbered
from tests.lazily import Library
from tests.postgres import Server, own_by_server, programs
from tests.torture.partition import Partition
from tests.torture.test_disks import LONG, fill
from tests.torture.test_waits import HANGS, Started

psycopg = Library("psycopg")
pytestmark = pytest.mark.slow
CASES, CONCURRENCY = 120, 4
IN_FLIGHT = 2 * CONCURRENCY + 16
IMPATIENT = f"""\
from fairtrial.store import waiting
waiting.Waiting.__init__.__defaults__ = (1.0,)
{forks.PROGRAM}
"""
HOWS = ("waits", "interrupt", "limit")  # the trouble ends while the run waits; a person or the limit ends the run


@pytest.fixture
def suite(write_suite: Callable[..., Path]) -> Path:
    path: Path = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(CASES), concurrency=CONCURRENCY)
    return path


class Disk(NamedTuple):
    """A database on a small disk of its own."""

    url: str
    place: Path


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server whose disks may be full: nobody can make a database there as long as one of them is."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (apt install postgresql)")
    with tempfile.TemporaryDirectory(prefix="fairtrial-postgres-") as folder:
        server = Server(Path(folder))
        server.create()
        yield server
        server.stop("immediate")


@pytest.fixture
def disk(own_server: Server) -> Iterator[Disk]:
    """Its tables only: the server's log of changes is on a disk with room."""
    place = Path(tempfile.mkdtemp(prefix="fairtrial-disk-"))
    mount = shutil.which("mount") or "mount"
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)], check=False).returncode:
        place.rmdir()
        pytest.skip("a disk can be mounted here by nobody but root")
    try:
        (place / "tables").mkdir()
        own_by_server(place, place / "tables")
        name = f"disk_{place.name.rpartition('-')[2]}"
        own_server.execute(f"CREATE TABLESPACE \"{name}\" LOCATION '{place / 'tables'}'")
        url = own_server.new_database("template1", tablespace=name)
        yield Disk(url, place)
        own_server.drop_database(url)
        own_server.execute(f'DROP TABLESPACE "{name}"')
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def stored(url: str) -> dict[int, str]:
    """Every case that has an answer, with the answer."""
    with closing(Store(url, create=False)) as store:
        return stored_in(store)


def stored_in(store: Store) -> dict[int, str]:
    """The same by a connection that is open: a server whose disk is full may not be able to begin another one."""
    rows = store.fetch(select(schema.trials.c.case_position, schema.trials.c.answer))
    return {position: answer for position, answer in rows if answer is not None}


def nothing_lost(url: str, state: Any, before: dict[int, str], most: int) -> None:
    """Check that everything is stored, as it was, and that no more was bought twice than was in flight."""
    after = stored(url)
    assert before.items() <= after.items() and len(after) == CASES
    store = Store(url, create=False)
    (run,) = store.runs()
    assert run.status == "completed" and store.find_run(run.id).ended_at
    store.close()
    assert all(state.answered[f"Question {position}?"] == 1 for position in before)
    assert sum(times - 1 for times in state.answered.values()) <= most


async def in_trouble(
    chance: random.Random, how: str, url: str, suite: Path, state: Any, trouble: Any, words: str, reason: str
) -> None:
    """Begin a run, have the trouble begin and end, and complete the run as a person would."""
    run = Started("run", suite, "--store", url, folder=suite.parent, program=IMPATIENT if how == "limit" else None)
    goal = chance.randrange(1, 80)
    await run.until(lambda: state.calls.total() >= goal)
    with closing(Store(url, create=False)) as reader:
        stored_in(reader)
        with trouble:
            if how == "limit":
                assert await run.ended(HANGS) == 2, run.words
                before = stored_in(reader)
            else:
                await run.says(f"waiting: {reason}")
                before = stored_in(reader)
                if how == "interrupt":
                    assert await run.interrupt() == 130, run.words
    wrong = [line for line in run.said if "error" in line]
    # A full disk may have room again by itself, when the database drops old logs: then the run went on until Ctrl-C.
    if how == "limit" or wrong:
        (said,) = wrong
        assert re.search(words + ".*what was stored is safe", said), run.words
        assert re.search(r"`fairtrial resume \S+ --store URL` continues$", said), run.words
    elif how == "interrupt":
        assert re.search(r"fairtrial resume\b.* --store URL", run.words), run.words
    await completed(run, how, url, suite, state, before)
    assert "error ignored" not in run.words


@contextmanager
def full(place: Path) -> Iterator[None]:
    filler = fill(place)
    yield
    filler.unlink()


@contextmanager
def read_only(postgres: Server, url: str) -> Iterator[None]:
    name = url.rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    yield
    postgres.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


@pytest.mark.parametrize("how", HOWS)
async def test_a_database_whose_disk_is_full(campaign, how, suite, model_server, disk):
    for chance in campaign.rounds(short=1):
        state = await model_server(latency=0.004, answer=LONG)
        words = "the disk of the database .* is full: free some space"
        await in_trouble(
            chance, how, disk.url, suite, state, full(disk.place), words, "the disk of the database is full"
        )
        campaign.count(lost=0, hung=0, tracebacks=0, full=1)
        empty(disk.url)


def empty(url: str) -> None:
    store = Store(url, create=False)
    (run,) = store.runs()
    store.delete_run(run.id)
    store.close()


@pytest.mark.parametrize("how", HOWS)
async def test_a_database_that_takes_no_changes(campaign, how, suite, model_server, postgres):
    """As while another server takes its place: a connection that has been made to it leads nowhere from then on."""
    for chance in campaign.rounds(short=1):
        state, url = await model_server(latency=0.004, answer="42: {prompt}"), postgres.new_database()
        trouble = read_only(postgres, url)
        words = "the database .* is read-only: give the address of the primary server"
        await in_trouble(chance, how, url, suite, state, trouble, words, "the database is read-only")
        campaign.count(lost=0, hung=0, tracebacks=0, read_only=1)
        postgres.drop_database(url)


async def test_a_run_on_a_database_that_takes_no_changes_is_refused(postgres_url, postgres, suite, model_server):
    state = await model_server(answer="42")
    postgres.execute(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET default_transaction_read_only = on")
    run = Started("run", suite, "--store", postgres_url, folder=suite.parent)
    assert await run.ended(HANGS) == 1 and not state.calls
    assert re.fullmatch("error: the database .* is read-only: give the address of the primary server", run.words)


# -- slow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS[:2])
async def test_a_database_that_is_slow(campaign, how, suite, model_server, postgres):
    """Whatever is sent to it, and what it replies, takes more than a second: the run keeps what it holds."""
    for chance in campaign.rounds(short=1):
        state, url = await model_server(latency=0.004, answer="42: {prompt}"), postgres.new_database()
        async with Partition(url) as partition:
            run = Started("run", suite, "--store", partition.url, folder=suite.parent)
            goal = chance.randrange(1, 80)
            await run.until(partial(lambda goal, state: state.calls.total() >= goal, goal, state))
            partition.delay = 1 + chance.random()
            await run.says("waiting: the store has not replied")
            before = stored(url)
            if how == "interrupt":
                assert await run.interrupt() == 130, run.words
            partition.delay = 0.0
            await completed(run, how, url, suite, state, before)
        campaign.count(lost=0, hung=0, tracebacks=0, slow=1)
        postgres.drop_database(url)


LOCKS = {
    "answers": "LOCK TABLE trials IN SHARE MODE",
    "everything": "LOCK TABLE runs, trials, scores, ledgers IN ACCESS EXCLUSIVE MODE",
    "the run": "UPDATE runs SET number = number",
}


@pytest.mark.parametrize("how", HOWS[:2])
@pytest.mark.parametrize("lock", LOCKS)
async def test_a_database_that_another_program_has_locked(campaign, lock, how, suite, model_server, postgres):
    """In a transaction that is left open: nothing is replied, and there is no error to wait for."""
    for chance in campaign.rounds(short=1):
        state, url = await model_server(latency=0.004, answer="42: {prompt}"), postgres.new_database()
        run = Started("run", suite, "--store", url, folder=suite.parent)
        goal = chance.randrange(1, 80)
        await run.until(partial(lambda goal, state: state.calls.total() >= goal, goal, state))
        with psycopg.connect(url) as other:
            other.execute(LOCKS[lock])
            await run.says("waiting: the store has not replied")
            if how == "interrupt":
                assert await run.interrupt() == 130, run.words
        await completed(run, how, url, suite, state, {})
        campaign.count(lost=0, hung=0, tracebacks=0, locked=1)
        postgres.drop_database(url)


async def free(url: str) -> None:
    """Wait until the server has noticed that nobody works on the run: what says so may be slow, too."""
    store = Store(url, create=False)
    while store.runs()[0].status == "running":
        await asyncio.sleep(0.05)
    store.close()


async def completed(run: Started, how: str, url: str, suite: Path, state: Any, before: dict[int, str]) -> None:
    """Check that a run completes by itself, or `resume` does if it was ended."""
    if how == "waits":
        assert await run.ended(HANGS) == 0, run.words
        nothing_lost(url, state, before, 0)
        return
    before |= stored(url)
    await free(url)
    resumed = Started("resume", "latest", "--store", url, "--quiet", folder=suite.parent)
    assert await resumed.ended(HANGS) == 0, resumed.words
    nothing_lost(url, state, before, IN_FLIGHT)
