"""A run that is taken over while its first process is cut off, or frozen, and goes on later (design note 0041).

The first process loses its hold without noticing: the server ends its sessions, or somebody deletes its lock. A second one
resumes the run and completes it. Then the first one is let go on. By the model server's own ledger nothing that was
stored may change, and whatever was bought twice must be in the run's sums.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from fairtrial.store import Store, schema
from fairtrial.store.ledger import charged, spent
from tests import forks
from tests.conftest import numbered
from tests.lazily import Library
from tests.torture.partition import Partition

psutil = Library("psutil")
CASES, CONCURRENCY = 60, 6
AT_ONCE = 2 * CONCURRENCY + 16  # trials that are asked, stored and scored at the same time
PRICE = {"openai:m": {"input": 100.0, "output": 100.0}}
ANSWERS = tuple(f"{n}: 42" for n in range(1000))  # no two calls are answered alike
STORES = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


class Taken(NamedTuple):
    """What happened: the rows when the second process had ended and when the first had, and what the first said."""

    before: dict[str, list[Any]]
    after: dict[str, list[Any]]
    code: int
    said: str
    in_flight: int  # answers that the first process can have received or asked for without having stored them


def rows_of(store: Store) -> dict[str, list[Any]]:
    tables = (schema.runs, schema.trials, schema.scores, schema.scorings)
    return {table.name: store.fetch_dicts(select(table).order_by(*table.primary_key)) for table in tables}


async def until(condition: Any, process: Any) -> None:
    while not condition():
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        await asyncio.sleep(0.005)


async def take_over(
    postgres: Any, url: str, suite: Path, state: Any, *, held: int, frozen: bool, more: tuple[str, ...] = ()
) -> Taken:
    """Play the scene: the first process gets `held` answers, then is cut off, or frozen, with calls in flight."""
    database = url.startswith("postgresql")
    state.hold(after=held)
    async with Partition(url) if database else nullcontext() as partition:
        near = partition.url if partition is not None else url
        first = forks.start("run", suite, "--store", near, "--quiet", *more, folder=suite.parent)
        await until(lambda: state.calls.total() >= min(CASES, held + CONCURRENCY), first)
        store = Store(url, create=False)
        (run,) = store.runs()
        await until(lambda: len(rows_of(store)["trials"]) >= held, first)
        lose_hold(postgres, url, run.id, first, partition, frozen)
        state.release()
        second = forks.start("resume", run.id, "--store", url, "--quiet", folder=suite.parent)
        try:
            out, said = await asyncio.to_thread(second.communicate)
            assert second.returncode == 0, (out, said)
            before = rows_of(store)
        finally:
            first.send_signal(signal.SIGCONT)
            if partition is not None:
                partition.heal()
        out, said = await asyncio.to_thread(first.communicate)
        taken = Taken(before, rows_of(store), first.returncode, (out + said).decode(), AT_ONCE)
        store.close()
    return taken


def freeze(process: Any, file: Path | None) -> None:
    """Stop a process, outside of transactions of a SQLite file: one that is frozen in them keeps everybody out."""
    while True:
        process.send_signal(signal.SIGSTOP)
        while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)
        if file is None or can_be_written(file):
            return
        process.send_signal(signal.SIGCONT)


def can_be_written(file: Path) -> bool:
    with closing(sqlite3.connect(file, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.rollback()
    return True


def lose_hold(postgres: Any, url: str, run_id: str, first: Any, partition: Partition | None, frozen: bool) -> None:
    path = None if partition is not None else Path(url.removeprefix("sqlite:///"))
    if frozen:
        freeze(first, path)
    if path is not None:
        (path.parent / "locks" / path.name / f"{run_id}.lock").unlink()
        return
    assert partition is not None
    if not frozen:
        partition.cut()
    name = url.rpartition("/")[2]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' "
        "AND application_name LIKE 'fairtrial%' AND application_name NOT LIKE "
        f"'%process {os.getpid()}'"
    )


def check(taken: Taken, state: Any, store: Store, budget: float | None) -> dict[str, int]:
    """Hold the store against the server's ledger; return what was counted."""
    changed = sum(
        one != other
        for table in taken.before
        for one, other in zip(taken.before[table], taken.after[table], strict=True)
    )
    assert not changed and len(taken.after["trials"]) == CASES
    assert taken.after["runs"][0]["status"] == "completed"
    assert "Traceback" not in taken.said
    run_id = taken.after["runs"][0]["id"]
    late = store.fetch_dicts(select(schema.late))
    costs = spent(store, run_id)
    calls, extra = state.calls.total(), state.calls.total() - CASES
    assert sum(row["attempts"] for row in taken.after["trials"]) == CASES
    answers = [row["answer"] for row in taken.after["trials"]]
    assert len({*answers}) == CASES  # of different calls
    if taken.code == 0:  # it had nothing left to do
        assert not extra and not late
    else:
        assert taken.code == 2 and taken.said.count("another process now works on") == 1, taken
    unknown = costs.unknown
    assert calls <= CASES + len(late) + unknown  # every call is a row, a late row, or of unknown cost
    assert len(late) + unknown <= taken.in_flight
    known = sum(row["charged_usd"] for row in (*taken.after["trials"], *late))
    assert costs.known == pytest.approx(known)
    if budget is not None:
        assert costs.charged >= known - 1e-9 and charged(store, run_id) <= budget
    return {"bought_twice": extra, "late": len(late), "unknown": unknown}


@STORES
@pytest.mark.parametrize("frozen", [False, True])
async def test_a_run_that_was_taken_over_keeps_its_answers(
    campaign, kind, frozen, request, write_suite, model_server, tmp_path
):
    postgres = request.getfixturevalue("postgres") if kind == "postgresql" else None
    for chance in campaign.rounds(short=1):
        state = await model_server(answers=ANSWERS)
        url = postgres.new_database() if postgres else f"sqlite:///{tmp_path}/{chance.random()}/s.db"
        Store(url).close()
        budget = chance.choice((None, 5.0))
        keys = {"params": {"max_tokens": 20}, **({"budget_usd": budget} if budget else {})}
        suite = write_suite(
            targets=["openai:m"], prices=PRICE, scorer="boolean", cases=numbered(CASES), concurrency=CONCURRENCY, **keys
        )
        taken = await take_over(postgres, url, suite, state, held=chance.randrange(1, CASES), frozen=frozen)
        store = Store(url)
        counted = check(taken, state, store, budget)
        store.close()
        if postgres:
            postgres.drop_database(url)
        campaign.count(takeovers=1, changed=0, unaccounted=0, **counted)
