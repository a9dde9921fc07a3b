"""A new store of the rows that are whole in a damaged one: what is missing in it is asked again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import create_engine, select, update

from fairtrial.core.place import COLUMNS
from fairtrial.store import rows, schema, totals
from fairtrial.store.hash_column import content
from fairtrial.store.migrations import CURRENT
from fairtrial.store.statements import INSERT_CASES
from fairtrial.store.store import UNFINISHED, Store

_LOST = "(this case was damaged and is lost)"  # its question, and the only target that is asked it
_MANY_LOST = 10_000  # cases; more than that were never there


def make_tables(source: sqlite3.Connection, copy: sqlite3.Connection, save: Path, version: int) -> None:
    """Create the tables: ours, or those of the source if an older version made them, because its rows fit no others."""
    if version == CURRENT:
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(save))
        schema.metadata.create_all(engine)
        engine.dispose()
        return
    query = (  # no triggers, which would be carried out
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' "
        "AND type IN ('table', 'index') ORDER BY type = 'index'"
    )
    for (statement,) in source.execute(query).fetchall():
        copy.execute(statement)


def complete(store: Store) -> None:
    """Make a store of rows that were found whole one that can be worked with."""
    _drop_orphans(store)
    _replace_lost_cases(store)
    _reopen_runs(store)


def _drop_orphans(store: Store) -> None:
    """Delete scores and other rows whose answer is lost: the question will be asked again."""
    same = " AND ".join(f"t.{name} = o.{name}" for name in ("run_id", *COLUMNS))
    with store.writing() as connection:
        for table in ("scores", "judgements", "labels", "attachments"):
            orphans = f"DELETE FROM {table} AS o WHERE NOT EXISTS (SELECT 1 FROM trials AS t WHERE {same})"  # noqa: S608
            connection.exec_driver_sql(orphans)


def _replace_lost_cases(store: Store) -> None:
    """Put cases that are asked nowhere in the place of lost ones: the others keep their positions, by which they count.

    What was answered to them is whole, and stays.
    """
    cases, plans = schema.cases, schema.plans
    for plan_id, count in store.fetch(select(plans.c.id, plans.c.case_count)):
        positions = {
            position for (position,) in store.fetch(select(cases.c.position).where(cases.c.plan_id == plan_id))
        }
        last = max(positions, default=-1) + 1
        if count == UNFINISHED:
            continue
        whole = count if last <= count <= 2 * last + _MANY_LOST else last
        lost = [position for position in range(whole) if position not in positions]
        empty = {str(column.name): None for column in content(cases)}
        asked = {"targets": rows.encode([_LOST]), "weight": 1.0, "input": _LOST}
        with store.writing() as connection:
            if lost:
                made = [{**empty, **asked, "plan_id": plan_id, "position": n, "id": f"lost-{n}"} for n in lost]
                INSERT_CASES.execute(connection, store.dialect, made)
            connection.execute(update(plans).where(plans.c.id == plan_id).values(case_count=whole))


def _reopen_runs(store: Store) -> None:
    """Mark completed runs that have lost answers as interrupted, so that they can be resumed."""
    for run in store.runs():
        planned = totals.planned_trials(store, run.plan_id, store.arms(store.plan(run.plan_id)))
        scored = sum(arm.scored for arm in totals.arm_totals(store, run.id, run.scoring).values())
        if run.status == "completed" and scored < sum(planned):
            store.set_run(run.id, status="interrupted", reason="recovered from a damaged store")
