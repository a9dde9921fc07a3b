"""Plans: the cases and arms of a suite, written once and never changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection, func, insert, or_, select, update

from fairtrial.core.errors import StoreAwayError
from fairtrial.core.experiment import Case, ScorerSpec
from fairtrial.core.file import File
from fairtrial.core.variables import Variables
from fairtrial.store import rows, schema
from fairtrial.store.planned import Planned, planned_cases, target_rows
from fairtrial.store.statements import INSERT_CASES, insert_missing
from fairtrial.store.store import UNFINISHED, Store
from fairtrial.store.types import json_text
from fairtrial.store.waiting import Waiting

_BATCH = 2500  # cases written at a time: a run waits for all of them, other writers for one batch


def write_plan(
    store: Store,
    plan: dict[str, Any],
    cases: Iterable[Case],
    variables: Variables,
    files: Iterable[File] = (),
    waiting: Waiting | None = None,
) -> Generator[Planned, None, None]:
    """Write a plan, the files of its cases, and stream the cases; yield those that are stored so far.

    Cases are written in batches, so that other writers do not have to wait for all of them. A plan that is complete is
    not written again; one that was left unfinished is continued.
    """
    waiting = waiting or Waiting()
    with store.dialect.lock(f"plan-{plan['id']}"):
        planned, complete = waiting.call(begin_plan, store, plan)
        yield planned
        if complete:
            return
        for file in files:
            waiting.call(_add_file, store, plan["id"], file)
        stream = (rows.case_row(plan["id"], case, variables) for case in islice(cases, planned.cases, None))
        last: int | None = None
        while batch := list(islice(stream, _BATCH)):
            waiting.call(_add_cases, store, batch, last)
            last = batch[-1]["position"]
            planned = planned.with_rows(batch)
            yield planned
        waiting.call(_complete, store, plan["id"], planned.cases, last)


def _complete(store: Store, plan_id: str, count: int, last: int | None) -> None:
    with store.writing() as connection:
        _assert_last(store, connection, plan_id, last)
        connection.execute(update(schema.plans).where(schema.plans.c.id == plan_id).values(case_count=count))


def _assert_last(store: Store, connection: Connection, plan_id: str, last: int | None) -> None:
    """Raise if the case that was written last is gone: a plan with a gap could never be completed."""
    table = schema.cases
    if last is None or connection.scalar(select(func.max(table.c.position)).where(table.c.plan_id == plan_id)) == last:
        return
    raise StoreAwayError(
        f"the server of {store.path} was replaced by one that lacks cases which had just been stored: run the suite "
        "again"
    )


def _add_cases(store: Store, batch: list[dict[str, Any]], last: int | None) -> None:
    with store.writing() as connection:
        _assert_last(store, connection, batch[0]["plan_id"], last)
        INSERT_CASES.execute(connection, store.dialect, batch)


def _add_file(store: Store, plan_id: str, file: File) -> None:
    sha256 = hashlib.sha256(file.body).hexdigest()
    row = {"sha256": sha256, "media": file.media, "body": file.body}
    with store.writing() as connection:
        store.dialect.serialise(connection, "files", shared=True)
        connection.execute(insert_missing(store.dialect, schema.files).values(row))
        link = insert_missing(store.dialect, schema.plan_files).values(plan_id=plan_id, sha256=sha256)
        connection.execute(link)


def begin_plan(store: Store, plan: dict[str, Any]) -> tuple[Planned, bool]:
    """Return the cases of a plan that are stored, and whether these are all."""
    with store.writing() as connection:
        return insert_plan(connection, plan)


def insert_plan(connection: Connection, plan: dict[str, Any]) -> tuple[Planned, bool]:
    """Write a plan without cases as a part of a transaction; return what is stored of it, as `begin_plan` does."""
    table = schema.plans
    count = connection.scalar(select(table.c.case_count).where(table.c.id == plan["id"]))
    if count is not None:
        return planned_cases(connection, plan["id"]), count != UNFINISHED
    connection.execute(insert(table).values(**plan, case_count=UNFINISHED, created_at=time.time()))
    if targets := target_rows(plan["id"], plan["arms"]):
        connection.execute(insert(schema.plan_targets), targets)
    return Planned(), False


def case_templates(store: Store, plan_id: str) -> Iterator[str]:
    """Yield the texts of a plan's cases that may contain variables."""
    table = schema.cases
    blobs = (json_text(table.c[name]) for name in ("scorer", "extract", "vars", "turns"))
    texts = (table.c.input, table.c.expected, *blobs)
    with_variables = or_(*(text.contains("${") for text in texts))
    query = select(*texts).where(table.c.plan_id == plan_id, with_variables).order_by(table.c.position)
    with store.reading() as connection:
        for row in connection.execute(query):
            yield from (text for text in row if text)


def case_scorers(store: Store, plan_id: str) -> list[ScorerSpec]:
    """Return the distinct scorers that a plan's cases set themselves."""
    table = schema.cases
    query = select(table.c.scorer).where(table.c.plan_id == plan_id, table.c.scorer.is_not(None)).distinct()
    return [rows.decode(scorer) for (scorer,) in store.fetch(query.order_by(table.c.scorer))]
