"""One contract for every kind of database: how it is opened, locked and written to, and what its errors mean."""

import multiprocessing
from pathlib import Path

import pytest
from filelock import Timeout
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from fairtrial.core.errors import BadRowError, StoreError, StoreLockedError
from fairtrial.core.variables import Variables
from fairtrial.store import Store, schema
from fairtrial.store.dialect import translated
from fairtrial.store.sqlite import Sqlite
from fairtrial.store.statements import UPSERTS

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(params=["sqlite"])
def dialect(request, tmp_path):
    return {"sqlite": lambda: Sqlite(tmp_path / "store" / "x.db")}[request.param]()


@pytest.fixture
def opened(dialect):
    """A store on that database, up to date."""
    store = Store(dialect.place)
    yield store
    store.close()


def test_what_is_not_there_is_made_only_if_wanted(dialect):
    with pytest.raises(StoreError, match="there is no store"):
        dialect.open(create=False)
    dialect.open(create=True).dispose()
    dialect.open(create=False).dispose()


def _hold(place: str, name: str, held, done) -> None:
    with Sqlite(Path(place)).lock(name):
        held.set()
        done.wait(600)


@pytest.mark.slow
def test_a_lock_is_for_one_process_and_goes_with_it(dialect, opened):
    held, done = SPAWN.Event(), SPAWN.Event()
    other = SPAWN.Process(target=_hold, args=(dialect.place, "run-1", held, done))
    other.start()
    assert held.wait(240)
    with pytest.raises(Timeout):
        dialect.lock("run-1").acquire(timeout=0)
    with dialect.lock("run-2"):  # another name is another lock
        pass
    other.kill()
    other.join()
    with dialect.lock("run-1").acquire(timeout=240):
        pass


def _vote(number: int, choice: str) -> dict:
    return {
        "id": f"v{number}", "run_id": "r", "case_position": 0, "repeat": 0, "arm_one": 0, "arm_other": 1,
        "choice": choice, "left": 0, "voter": "p", "voted_at": 1.0,
    }  # fmt: skip


@pytest.fixture
def with_run(opened):
    opened.add_plan(
        {
            "id": "p",
            "suite_name": "s",
            "suite_text": "",
            "suite_sha256": "",
            "dataset_sha256": "",
            "folder": ".",
            "arms": b'[{"target": {"id": "mock:echo"}}]',
        },
        [],
        Variables({}),
    )
    opened.add_run({"id": "r", "plan_id": "p", "series_id": None, "settings": b"{}", "context": b"{}"})
    return opened


def test_a_row_takes_the_place_of_the_one_with_its_key(with_run):
    with_run.write({"votes": [_vote(1, "one"), _vote(2, "tie")]})
    with_run.write({"votes": [_vote(1, "other")]})
    with with_run.reading() as connection:
        rows = connection.execute(select(schema.votes.c.id, schema.votes.c.choice).order_by(schema.votes.c.id)).all()
    assert [tuple(row) for row in rows] == [("v1", "other"), ("v2", "tie")]


@pytest.mark.slow
def test_costs_add_up(with_run):
    for known in (0.5, 0.25):
        row = {"run_id": "r", "cost_usd": known, "charged_usd": known, "unknown_costs": 1, "at_risk_usd": known}
        with_run.write({"ledgers": [row]})
    with with_run.reading() as connection:
        row = connection.execute(select(schema.ledgers)).mappings().one()
    assert (row["cost_usd"], row["unknown_costs"], row["at_risk_usd"]) == (0.75, 2, 0.25)


def test_every_table_that_is_written_has_a_statement(with_run, dialect):
    for name in UPSERTS:
        statement = str(dialect.insert(schema.metadata.tables[name]).compile(with_run.engine))
        assert statement.startswith(f"INSERT INTO {name} ")


def test_nothing_is_written_of_a_transaction_that_fails(with_run):
    with pytest.raises(BadRowError):
        with_run.write({"votes": [_vote(1, "one"), {**_vote(2, "one"), "run_id": "nobody"}]})
    with with_run.reading() as connection:
        assert connection.execute(select(schema.votes)).all() == []


def test_errors_are_sentences(dialect):
    with pytest.raises(StoreError, match="cannot be used: odd"), translated(dialect):
        raise OperationalError("", {}, Exception("odd"))
    with pytest.raises(StoreLockedError, match="locked by another program"), translated(dialect):
        raise OperationalError("", {}, Exception("database is locked"))
    with pytest.raises(BadRowError, match="cannot store this row"), translated(dialect):
        raise OverflowError("too large")
