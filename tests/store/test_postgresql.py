"""PostgreSQL as the store: servers that are restarted, connections that are lost, several drivers at once."""

import asyncio
import random
import tempfile
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select

from fairtrial import pipeline
from fairtrial.core.errors import FairtrialError, RunLostError, StoreError, StoreUnreachableError
from fairtrial.store import Store, schema, waiting
from fairtrial.store.address import dialect_of, shown
from fairtrial.store.lease import RunLease
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.conftest import numbered
from tests.lazily import Library
from tests.plans import add_plan
from tests.postgres import PASSWORD, Server

psycopg = Library("psycopg")

PRICES = {"openai:m": {"input": 100.0, "output": 100.0}}


@pytest.fixture(scope="module")
def own_server(postgres: Server) -> Iterator[Server]:
    """A server that may be stopped without disturbing other tests; every commit is durable."""
    folder = tempfile.TemporaryDirectory(prefix="fairtrial-postgres-")
    server = Server(Path(folder.name), {"fsync": "on", "full_page_writes": "on"})
    server.create()
    yield server
    server.stop("immediate")
    folder.cleanup()


def _terminate(postgres: Server, url: str) -> None:
    """End every connection to a database, as an administrator or a firewall does."""
    name = url.rpartition("/")[2]
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


def _check_nothing_is_lost_or_doubled(run, state, cases: int) -> None:
    trials = list(run.trials())
    assert run.status == "completed" and len(trials) == cases
    assert {trial.score for trial in trials} == {1.0} and {trial.attempts for trial in trials} == {1}
    assert set(state.calls.values()) == {1} and state.calls.total() == cases
    assert run.summary().spent.known == pytest.approx(sum(trial.cost_usd for trial in trials))


@pytest.mark.slow
async def test_the_server_is_restarted_in_mid_run(own_server, write_suite, model_server, tmp_path):
    """It is waited for, what was answered meanwhile is stored, and the run goes on."""
    state = await model_server(answer="42")
    state.hold(after=60)
    store = Store(own_server.url())
    suite = pipeline.load(
        write_suite(targets=["openai:m"], prices=PRICES, scorer="boolean", cases=numbered(300), concurrency=20)
    )
    sessions = []

    @asynccontextmanager
    async def watch(session):
        sessions.append(session)
        yield

    work = asyncio.create_task(pipeline.arun(suite, store=store, watch=watch))
    while not (sessions and sessions[0].progress.done):
        await asyncio.sleep(0.005)
    await asyncio.to_thread(own_server.stop)
    state.release()
    while "waiting: the database cannot be reached" not in sessions[0].progress.held_back():
        await asyncio.sleep(0.005)
    await asyncio.to_thread(own_server.start)
    run = await work
    _check_nothing_is_lost_or_doubled(run, state, 300)
    assert not store.dialect.is_locked(run.id)
    store.close()


@pytest.mark.slow
async def test_a_server_that_crashes_again_and_again(own_server, write_suite, model_server):
    """It is killed at random moments, in the middle of commits too: nothing is lost, nothing is counted twice."""
    state = await model_server(answer="42", latency=0.01)
    store = Store(own_server.url() + "?schema=crashes")
    suite = pipeline.load(
        write_suite(targets=["openai:m"], prices=PRICES, scorer="boolean", cases=numbered(700), concurrency=10)
    )
    work = asyncio.create_task(pipeline.arun(suite, store=store))
    chance = random.Random(7)
    for _ in range(6):
        before = state.calls.total()
        while state.calls.total() < before + chance.randrange(50, 200) and not work.done():
            await asyncio.sleep(0.001)
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
    _check_nothing_is_lost_or_doubled(await work, state, 700)
    store.close()


@pytest.fixture
def opened(postgres_url) -> Iterator[Store]:
    store = Store(postgres_url)
    add_plan(store,
        {
            "id": "p", "suite_name": "s", "suite_text": "", "suite_sha256": "", "dataset_sha256": "", "folder": ".",
            "arms": b"[]",
        },
        [],
        None,
    )  # fmt: skip
    store.add_run({"id": "r", "plan_id": "p", "series_id": None, "settings": b"{}", "context": b"{}"})
    yield store
    store.close()


def _charge(store: Store | RunLease) -> None:
    store.write(
        {"ledgers": [{"run_id": "r", "cost_usd": 1.0, "charged_usd": 1.0, "unknown_costs": 0, "at_risk_usd": 0.0}]}
    )


def _charged(store: Store) -> float:
    with store.reading() as connection:
        return connection.scalar(select(func.sum(schema.ledgers.c.cost_usd))) or 0.0


def test_a_commit_whose_reply_is_lost_counts_once(opened, monkeypatch):
    commit = psycopg.Connection.commit

    def commit_and_lose(connection) -> None:
        commit(connection)
        monkeypatch.undo()
        connection.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(psycopg.Connection, "commit", commit_and_lose)
    _charge(opened)
    assert _charged(opened) == 1.0


def test_a_commit_that_is_not_received_is_an_error_and_writes_nothing(opened, monkeypatch):
    def lose(connection) -> None:
        monkeypatch.undo()
        connection.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(psycopg.Connection, "commit", lose)
    with pytest.raises(StoreUnreachableError):
        _charge(opened)
    assert _charged(opened) == 0.0
    _charge(opened)
    assert _charged(opened) == 1.0


def test_a_lock_that_was_lost_is_acquired_again(opened, postgres, postgres_url):
    with opened.lease("r") as lease:
        _terminate(postgres, postgres_url)
        assert not dialect_of(postgres_url).is_locked("r")
        _charge(lease)
        assert dialect_of(postgres_url).is_locked("r")
    assert not dialect_of(postgres_url).is_locked("r")


def test_a_run_that_another_process_has_taken_over_is_left_to_it(opened, postgres, postgres_url):
    other = Store(postgres_url)
    with pytest.raises(RunLostError, match="another process now works on r"), opened.lease("r") as lease:
        _terminate(postgres, postgres_url)
        with other.lease("r"), pytest.raises(RunLostError):
            _charge(lease)
        assert not dialect_of(postgres_url).is_locked("r")
        _charge(lease)  # also when the other one has ended
    assert _charged(other) == 0.0
    other.close()


@pytest.mark.slow
async def test_of_two_drivers_that_race_for_a_run_one_is_told(postgres_url, write_suite, model_server, tmp_path):
    state = await model_server(answer="42")
    store = Store(postgres_url)
    suite = pipeline.load(write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(40)))
    run = await pipeline.arun(suite, store=store)
    with store.writing() as connection:
        connection.execute(schema.trials.delete().where(schema.trials.c.case_position >= 10))
        connection.execute(schema.scores.delete().where(schema.scores.c.case_position >= 10))
    store.set_run(run.id, status="interrupted")
    state.hold(after=state.calls.total())
    drivers = [forks.start("resume", run.id, "--quiet", "--store", postgres_url) for _ in range(2)]
    while not (ended := [driver for driver in drivers if driver.poll() is not None]):
        await asyncio.sleep(0.05)
    state.release()
    outputs = {driver: await asyncio.to_thread(driver.communicate) for driver in drivers}
    assert sorted(driver.returncode for driver in drivers) == [0, 1]
    assert b"is still running in another process" in outputs[ended[0]][1]
    assert PASSWORD.encode() not in b"".join(text for pair in outputs.values() for text in pair)
    assert state.calls.total() == 40 + 30
    assert len(list((await aresume(run.id, store=store)).trials())) == 40
    store.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://{user}:wrong-password@127.0.0.1:{port}/postgres", "does not accept this user or password"),
        ("postgresql://{user}@127.0.0.1:{port}/postgres", "needs a password"),
        ("postgresql://{user}:{password}@127.0.0.1:{port}/nothing", "no database `nothing`.*createdb nothing"),
        ("postgresql://{user}:{password}@127.0.0.1:1/x", "cannot be reached .Connection refused"),
        ("postgresql://{user}:{password}@127.0.0.1:port/x", "cannot be read: use sqlite"),
        ("postgresql://{user}:{password}@127.0.0.1:{port}/postgres?sslmode=maybe", "sslmode"),
        ("postgresql://{user}@127.0.0.1:{port}/postgres?password={password}&schema=no", "there is no store"),
    ],
)
def test_what_keeps_it_from_being_opened_is_said_without_the_password(postgres, address, words, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    url = address.format(user="tester", password=PASSWORD, port=postgres.port)
    with pytest.raises(FairtrialError, match=words) as raised:
        Store(url, create=False)
    assert PASSWORD not in str(raised.value) and "wrong-password" not in str(raised.value)
    if "port/x" not in url:
        assert PASSWORD not in shown(url) and PASSWORD not in dialect_of(url).place


def test_a_database_that_cannot_hold_every_text_is_refused(postgres):
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="createdb --encoding UTF8"):
        Store(postgres.url("latin"))


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("fairtrial.store.address.find_spec", lambda _: None)
    with pytest.raises(FairtrialError, match=r"pip install 'fairtrial\[postgres\]'"):
        Store("postgresql://me@db.example.com/evals")


def test_waiting_ends_soon_when_it_is_hurried():
    patience = waiting.Waiting()

    def out_of_reach() -> None:
        patience.hurry(0)
        raise StoreUnreachableError("gone")

    with pytest.raises(StoreUnreachableError):
        patience.call(out_of_reach)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:pass-word@a:1,b:2/evals?x=1&schema=s", "postgresql://me@a:1,b:2/evals?schema=s&x=1"),
        ("postgresql://a,b/evals", "postgresql://a,b/evals"),
        ("postgresql://me:a,b@c/evals", "postgresql://me@c/evals"),
    ],
)
def test_an_address_may_have_several_servers(url, place):
    assert shown(url) == place == dialect_of(url).place
    assert shown(dialect_of(url).address) == place
