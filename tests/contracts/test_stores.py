"""One contract for every kind of database: how it is opened, locked and written to, and what its errors mean."""

import math
import multiprocessing
import sqlite3
import threading

import pytest
from filelock import Timeout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, inspect, select, text, update
from sqlalchemy.exc import OperationalError

from fairtrial.core.errors import BadRowError, StoreError, StoreLockedError
from fairtrial.core.variables import Variables
from fairtrial.store import Store, migrations, schema
from fairtrial.store.address import dialect_of
from fairtrial.store.dialect import translated
from fairtrial.store.statements import UPSERTS
from tests.lazily import Library
from tests.plans import add_plan

psycopg = Library("psycopg")

SPAWN = multiprocessing.get_context("spawn")
# An answer that every database must give back as it was.
ODD_TEXTS = [
    "a\0b",
    "\0",
    "\uffff",
    "\uffff0\0\uffff1",
    "é🙂\u202e",
    "x" * 100_000,
    "\x01\x7f\x9b",
    "'; drop table runs --",
]


def locked(database: str) -> Exception:
    return (
        psycopg.errors.LockNotAvailable()
        if database == "postgresql"
        else sqlite3.OperationalError("database is locked")
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path):
    """The address of a store that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store" / "x.db")
    return request.getfixturevalue("postgres_url") + "?schema=not%20yet"


@pytest.fixture
def dialect(empty):
    return dialect_of(empty)


@pytest.fixture
def opened(dialect):
    """A store on that database, up to date."""
    store = Store(dialect.address)
    yield store
    store.close()


def test_what_is_not_there_is_made_only_if_wanted(empty):
    with pytest.raises(StoreError, match="there is no store"):
        Store(empty, create=False)
    Store(empty).close()
    Store(empty, create=False).close()


def _hold(address: str, name: str, held, done) -> None:
    with dialect_of(address).lock(name):
        held.set()
        done.wait(600)


@pytest.mark.slow
def test_a_lock_is_for_one_process_and_goes_with_it(dialect, opened):
    held, done = SPAWN.Event(), SPAWN.Event()
    other = SPAWN.Process(target=_hold, args=(dialect.address, "run-1", held, done))
    other.start()
    assert held.wait(240)
    with pytest.raises(Timeout):
        dialect.lock("run-1").acquire(timeout=0)
    assert dialect.is_locked("run-1") and not dialect.is_locked("run-2")
    with dialect.lock("run-2"):  # another name is another lock
        assert dialect.is_locked("run-2")
        with pytest.raises(Timeout):  # in one process too
            dialect.lock("run-2").acquire(timeout=0)
    assert not dialect.is_locked("run-2")
    other.kill()
    other.join()
    with dialect.lock("run-1").acquire(timeout=240):
        pass


def _vote(number: int, choice: str) -> dict:
    return {
        "id": f"v{number}", "run_id": "r", "case_position": 0, "repeat": 0, "arm_one": 0, "arm_other": 1,
        "choice": choice, "left": 0, "voter": "p", "voted_at": 1.0,
    }  # fmt: skip


def _run(store: Store, name: str) -> None:
    store.add_run({"id": name, "plan_id": "p", "series_id": None, "settings": b"{}", "context": b"{}"})


@pytest.fixture
def with_run(opened):
    add_plan(
        opened,
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
    _run(opened, "r")
    return opened


def test_a_row_takes_the_place_of_the_one_with_its_key(with_run):
    with_run.write({"votes": [_vote(1, "one"), _vote(2, "tie"), _vote(1, "tie")]})
    with_run.write({"votes": [_vote(1, "one"), _vote(1, "other")]})
    with with_run.reading() as connection:
        rows = connection.execute(select(schema.votes.c.id, schema.votes.c.choice).order_by(schema.votes.c.id)).all()
    assert [tuple(row) for row in rows] == [("v1", "other"), ("v2", "tie")]


def test_costs_add_up(with_run):
    costs = [0.5, 0.25, 0.125]
    ledgers = [
        {"run_id": "r", "cost_usd": known, "charged_usd": known, "unknown_costs": 1, "at_risk_usd": known}
        for known in costs
    ]
    with_run.write({"ledgers": ledgers[:1]})
    with_run.write({"ledgers": ledgers[1:]})  # twice in one transaction
    with with_run.reading() as connection:
        row = connection.execute(select(schema.ledgers)).mappings().one()
    assert (row["cost_usd"], row["unknown_costs"], row["at_risk_usd"]) == (0.875, 3, 0.125)


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
        raise OperationalError("", {}, locked(dialect.name))
    with pytest.raises(BadRowError, match="cannot store this row"), translated(dialect):
        raise OverflowError("too large")


# -- values that one database might change ---------------------------------------------------------


def _trial(position: int, **fields) -> dict:
    row = dict.fromkeys(schema.trials.c.keys())
    place = {"run_id": "r", "case_position": position, "arm_position": 0, "repeat": 0, "trial_id": f"t{position}"}
    counts = {"attempts": 1, "cached": False, "waited_ms": 0.0, "started_at": 1.0, "unknown_costs": 0}
    return {**row, **place, **counts, "cost_usd": 0.0, "charged_usd": 0.0, **fields}


def _read(store: Store, column: str) -> list:
    table = schema.trials
    with store.reading() as connection:
        return list(connection.scalars(select(table.c[column]).order_by(table.c.case_position)))


def test_texts_come_back_as_they_were(with_run):
    with_run.write({"trials": [_trial(n, answer=answer) for n, answer in enumerate(ODD_TEXTS)]})
    assert _read(with_run, "answer") == ODD_TEXTS
    with with_run.writing() as connection:  # statements that are not prepared
        connection.execute(update(schema.trials).values(model="a\0b\uffff", row_hash=None))
        found = select(schema.trials.c.case_position).where(schema.trials.c.model.contains("\0b"))
        assert len(connection.execute(found).all()) == len(ODD_TEXTS)
    assert set(_read(with_run, "model")) == {"a\0b\uffff"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20)
@given(st.lists(st.text(st.sampled_from("\0\uffff01a")), min_size=1, max_size=20))
def test_any_text_comes_back_as_it_was(with_run, texts):
    with with_run.writing() as connection:
        connection.execute(delete(schema.trials))
    with_run.write({"trials": [_trial(n, answer=answer) for n, answer in enumerate(texts)]})
    assert _read(with_run, "answer") == texts


def test_texts_are_in_the_order_of_their_code_points(with_run):
    texts = ["Z", "a", "B", "é", "_", "ab", "a b", "🙂", "\uffee"]
    with_run.write({"trials": [_trial(n, answer=answer) for n, answer in enumerate(texts)]})
    with with_run.reading() as connection:
        column = schema.trials.c.answer
        assert list(connection.scalars(select(column).order_by(column))) == sorted(texts)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_character_is_refused(with_run, text):
    with pytest.raises(BadRowError):
        with_run.write({"trials": [_trial(0, answer=text)]})


def test_numbers_come_back_as_they_were(with_run):
    numbers = [2**53, 2**63 - 1, 0, None]
    values = [math.inf, -math.inf, math.nan, 1e-320]
    rows = [
        _trial(n, prompt_tokens=number, latency_ms=value)
        for n, (number, value) in enumerate(zip(numbers, values, strict=True))
    ]
    with_run.write({"trials": rows})
    assert _read(with_run, "prompt_tokens") == numbers
    assert _read(with_run, "latency_ms") == [math.inf, -math.inf, None, 1e-320]
    with with_run.writing() as connection:
        connection.execute(update(schema.trials).values(latency_ms=math.nan, row_hash=None))
    assert set(_read(with_run, "latency_ms")) == {None}


@pytest.mark.parametrize(
    "fields", [{"prompt_tokens": 2**63}, {"latency_ms": 10**400}, {"trial_id": None}, {"waited_ms": math.nan}, {"model": 2**70}]
)  # fmt: skip
def test_numbers_that_fit_nowhere_are_refused(with_run, fields):
    with pytest.raises(BadRowError):
        with_run.write({"trials": [_trial(0, **fields)]})


@pytest.mark.parametrize("many", [1, 200])  # few and many rows may go different ways
def test_few_and_many_rows_are_written_alike(with_run, many):
    """Rows that are there are replaced, costs add up, one bad row undoes all."""
    first = [_trial(n, answer=ODD_TEXTS[n % 5], prompt_tokens=7.0, cost_usd=0.5, tools=b"\0{}") for n in range(many)]
    again = [_trial(n, answer="later", cost_usd=0.25, cached=True, latency_ms=math.nan) for n in range(many)]
    with_run.write({"trials": first})
    assert _read(with_run, "answer") == [ODD_TEXTS[n % 5] for n in range(many)]
    assert _read(with_run, "prompt_tokens") == [7] * many and _read(with_run, "tools") == [b"\0{}"] * many
    with_run.write({"trials": again})
    with pytest.raises(BadRowError):
        with_run.write({"trials": [*first, _trial(many, answer="\ud800")]})
    with pytest.raises(BadRowError):
        with_run.write({"trials": [*first, _trial(many, run_id="nobody")]})
    assert _read(with_run, "answer") == ["later"] * many and _read(with_run, "cost_usd") == [0.75] * many
    assert _read(with_run, "attempts") == [2] * many and set(_read(with_run, "cached")) == {True}


def test_sums_are_numbers_as_python_has_them(with_run):
    with_run.write({"trials": [_trial(n, prompt_tokens=2**40) for n in range(3)]})
    with with_run.reading() as connection:
        total = connection.execute(text("select sum(prompt_tokens) from trials")).scalar_one()
    assert total == 3 * 2**40 and type(total) is int


# -- many at once ----------------------------------------------------------------------------------


def test_runs_that_start_at_once_have_different_numbers(with_run):
    start = threading.Barrier(6)

    def begin(number: int) -> None:
        store = Store(with_run.address)
        start.wait(240)
        _run(store, f"run-{number}")
        store.close()

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run.number for run in with_run.runs()) == list(range(1, 8))


def test_a_new_store_is_made_once(empty):
    start, problems = threading.Barrier(4), []

    def make() -> None:
        start.wait(240)
        try:
            Store(empty).close()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


# -- versions --------------------------------------------------------------------------------------


def _columns(store: Store) -> dict[str, set[str]]:
    tables = inspect(store.engine)
    return {name: {column["name"] for column in tables.get_columns(name)} for name in schema.metadata.tables}


def test_a_store_of_an_earlier_version_is_upgraded(with_run):
    """As it was before conversations: without their tables and columns."""
    whole = _columns(with_run)
    with with_run.writing() as connection:
        for table in ("turns", "plan_files"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        for column in ("vars", "turns", "attach", "extract", "several"):
            connection.exec_driver_sql(f"ALTER TABLE cases DROP COLUMN {column}")
        connection.exec_driver_sql("ALTER TABLE scores DROP COLUMN automatic")
        connection.execute(update(schema.meta).values(value="9"))
    again = Store(with_run.address)
    assert _columns(again) == whole and [run.id for run in again.runs()] == ["r"]
    with again.reading() as connection:
        assert migrations.is_current(connection)
    again.close()


def test_a_store_from_the_future_is_refused(with_run):
    with with_run.writing() as connection:
        connection.execute(update(schema.meta).values(value="99"))
    with pytest.raises(StoreError, match="newer fairtrial"):
        Store(with_run.address)
