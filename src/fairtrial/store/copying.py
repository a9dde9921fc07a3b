"""Copy runs from one store to another, of any kind, and verify that every row arrived.

A run is copied in batches in the order of its keys. Until all of it is verified, its status is `interrupted` and its
reason that it is being copied; copying it again goes on after the last row that arrived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Table, func, insert, select, tuple_, update

from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.store import schema
from fairtrial.store.arriving import COPYING, is_arriving
from fairtrial.store.lease import NUMBERS
from fairtrial.store.records import RunRecord
from fairtrial.store.statements import PreparedInsert, insert_missing
from fairtrial.store.store import UNFINISHED, Store

_BATCH = 1000
_OF_PLAN = (schema.plan_targets, schema.plan_files, schema.cases)
_OF_RUN = (
    schema.ledgers,
    schema.scorings,
    schema.trials,
    schema.turns,
    schema.scores,
    schema.judgements,
    schema.pairs,
    schema.labels,
    schema.attachments,
    schema.votes,
    schema.batches,
    schema.batch_requests,
    schema.late,
)
# What may differ: where and when a plan was written first; a run's number, its sessions there, and its status while it
# is copied.
_OWN: dict[Table, tuple[str, ...]] = {
    schema.plans: ("folder", "created_at", "case_count"),
    schema.runs: ("number", "status", "reason", "epoch"),
}
_INSERTS = {table: PreparedInsert(table, insert_missing, hashed=True) for table in schema.metadata.tables.values()}

Row = dict[str, Any]


class CopiedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one run: `copied`, `already there`, or `skipped` for a reason."""

    id: str
    suite: str
    outcome: str
    reason: str = ""
    rows: int = 0
    sha256: str = ""  # of all rows, equal in both stores


def find_copied(store: Store, names: Sequence[str]) -> list[RunRecord]:
    """Return the runs to copy: those named, or all."""
    if not names:
        return store.runs()
    return list({run.id: run for name in names for run in store.find_runs(name)}.values())


def copy_runs(source: Store, target: Store, runs: Sequence[RunRecord]) -> Iterator[CopiedRun]:
    """Copy these runs, oldest first, each with its plan, files and tags; yield what became of each."""
    if source.address == target.address:
        raise FairtrialError(f"{source.path} cannot be copied to itself: name two stores")
    for run in sorted(runs, key=lambda run: run.number):
        yield _copy_run(source, target, run)
    target.dialect.loaded(target.engine)


def copy_calibrations(source: Store, target: Store) -> int:
    """Copy the calibrations of judges, which belong to no run; return how many were new."""
    stored = select(func.count()).select_from(schema.calibrations)
    before: int = target.fetch_value(stored)
    for batch in _batches(source, schema.calibrations):
        _write(target, schema.calibrations, batch)
    return int(target.fetch_value(stored)) - before


def _copy_run(source: Store, target: Store, run: RunRecord) -> CopiedRun:
    result = CopiedRun(id=run.id, suite=run.suite_name, outcome="skipped")
    if run.status == "running":
        return replace(result, reason="it is still running: copy it when it has ended")
    if is_arriving(run):
        return replace(result, reason=f"it is {run.reason}")
    with source.lock(run.id), target.lock(run.id):
        there = _stored_run(target, run.id)
        copied = 0
        if there is None or there["reason"] == COPYING:
            copied = _copy_plan(source, target, run.plan_id)
            if there is None:
                _begin(source, target, run)
            for table in _OF_RUN:
                copied += _copy_table(source, target, table, table.c.run_id == run.id)
        differences, sha256 = _compare(source, target, run)
        if differences and (there is None or there["reason"] == COPYING):
            raise StoreError(
                f"run {run.id} did not arrive as it was ({'; '.join(differences)}): check both stores with `fairtrial "
                "store check`, delete the run there, then copy it again"
            )
        if differences:
            reason = f"it is there already and differs ({'; '.join(differences)}): delete it there to copy it again"
            return replace(result, reason=reason)
        if there is not None and there["reason"] != COPYING:
            return replace(result, outcome="already there", sha256=sha256)
        _finish(source, target, run)
        return replace(result, outcome="copied", rows=copied, sha256=sha256)


def _begin(source: Store, target: Store, run: RunRecord) -> None:
    """Write the run itself; it keeps its number unless a run there has it."""
    row, numbers = _stored_run(source, run.id), schema.runs.c.number
    assert row is not None
    with target.writing() as connection:
        target.dialect.serialise(connection, NUMBERS)
        if connection.scalar(select(numbers).where(numbers == run.number).limit(1)) is not None:
            row["number"] = (connection.scalar(select(func.max(numbers))) or 0) + 1
        connection.execute(insert(schema.runs).values({**row, "status": "interrupted", "reason": COPYING}))


def _finish(source: Store, target: Store, run: RunRecord) -> None:
    """Give the run its status, and its tags where the names are free."""
    row = _stored_run(source, run.id)
    assert row is not None
    for batch in _batches(source, schema.tags, schema.tags.c.run_id == run.id):
        _write(target, schema.tags, batch)
    target.set_run(run.id, status=row["status"], reason=row["reason"])


def _copy_plan(source: Store, target: Store, plan_id: str) -> int:
    table = schema.plans
    (plan,) = source.fetch_dicts(select(table).where(table.c.id == plan_id))
    with target.dialect.lock(f"plan-{plan_id}"):
        count = target.fetch_value(select(table.c.case_count).where(table.c.id == plan_id))
        if count is not None and count != UNFINISHED:
            return 0
        _write(target, table, [{**plan, "case_count": UNFINISHED}])
        copied = sum(_copy_table(source, target, part, part.c.plan_id == plan_id) for part in _OF_PLAN)
        files = select(schema.plan_files.c.sha256).where(schema.plan_files.c.plan_id == plan_id)
        _copy_files(source, target, [sha256 for (sha256,) in source.fetch(files)])
        with target.writing() as connection:
            connection.execute(update(table).where(table.c.id == plan_id).values(case_count=plan["case_count"]))
    return copied


def _copy_table(source: Store, target: Store, table: Table, which: ColumnElement[bool]) -> int:
    """Copy rows after the last one that is there, in the order of their keys."""
    copied = 0
    for batch in _batches(source, table, which, after=_last_key(target, table, which)):
        if table is schema.attachments:
            _copy_files(source, target, [row["sha256"] for row in batch])
        _write(target, table, batch)
        copied += len(batch)
    return copied


def _copy_files(source: Store, target: Store, hashes: Sequence[str]) -> None:
    """Copy files one by one, as they may be large."""
    files = schema.files
    for sha256 in dict.fromkeys(hashes):
        is_there = target.fetch_value(select(files.c.media).where(files.c.sha256 == sha256)) is not None
        if not is_there and (rows := source.fetch_dicts(select(files).where(files.c.sha256 == sha256))):
            target.write({"files": rows})


def _key(table: Table) -> list[ColumnElement[Any]]:
    return list(table.primary_key)


def _last_key(store: Store, table: Table, which: ColumnElement[bool]) -> tuple[Any, ...] | None:
    query = select(*_key(table)).where(which).order_by(*(column.desc() for column in _key(table))).limit(1)
    return next(map(tuple, store.fetch(query)), None)


def _rows(
    connection: Connection, table: Table, which: ColumnElement[bool] | None, after: tuple[Any, ...] | None = None
) -> Iterator[Row]:
    """Stream rows in the order of their keys."""
    query = select(table).order_by(*_key(table)).execution_options(yield_per=_BATCH)
    if which is not None:
        query = query.where(which)
    if after is not None:
        types = [column.type for column in _key(table)]
        query = query.where(tuple_(*_key(table)) > tuple_(*after, types=types))
    for row in connection.execute(query).mappings():
        yield dict(row)


def _batches(
    store: Store, table: Table, which: ColumnElement[bool] | None = None, after: tuple[Any, ...] | None = None
) -> Iterator[list[Row]]:
    with store.reading() as connection:
        stream = _rows(connection, table, which, after)
        while batch := list(islice(stream, _BATCH)):
            yield batch


def _write(store: Store, table: Table, batch: list[Row]) -> None:
    if batch:
        with store.writing() as connection:
            _INSERTS[table].execute(connection, store.dialect, batch)


def _stored_run(store: Store, run_id: str) -> Row | None:
    return next(iter(store.fetch_dicts(select(schema.runs).where(schema.runs.c.id == run_id))), None)


def _parts(run: RunRecord) -> Iterator[tuple[Table, ColumnElement[bool]]]:
    yield schema.plans, schema.plans.c.id == run.plan_id
    yield from ((table, table.c.plan_id == run.plan_id) for table in _OF_PLAN)
    yield schema.runs, schema.runs.c.id == run.id
    yield from ((table, table.c.run_id == run.id) for table in _OF_RUN)


def _compare(source: Store, target: Store, run: RunRecord) -> tuple[list[str], str]:
    """Compare every row of a run in both stores; return what differs, and a hash of all rows."""
    differences, total = [], hashlib.sha256()
    for table, which in _parts(run):
        here, there = _digest(source, table, which), _digest(target, table, which)
        total.update(there[1].encode())
        if here[0] != there[0]:
            differences.append(f"{table.name}: {here[0]} rows here, {there[0]} there")
        elif here != there:
            differences.append(f"{table.name}: other content")
    return differences, total.hexdigest()


def _digest(store: Store, table: Table, which: ColumnElement[bool]) -> tuple[int, str]:
    """Return the number of rows and a hash of them; files are known by hashes of their own."""
    count, digest = 0, hashlib.sha256()
    encode = msgspec.msgpack.Encoder().encode
    with store.reading() as connection:
        for row in _rows(connection, table, which):
            for name in _OWN.get(table, ()):
                del row[name]
            digest.update(encode(row))
            count += 1
    return count, digest.hexdigest()
