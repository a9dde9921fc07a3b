"""Schema migrations: steps are only added. Opening a store upgrades it; a store from a newer version is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlalchemy import Connection, Table, delete, insert, inspect, select, update
from sqlalchemy.schema import CreateColumn

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.planned import target_rows

Step = Callable[[Connection], None]
_VERSION = re.compile("[1-9][0-9]{0,8}")


def _columns_of(connection: Connection, table: str) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(table)}


def _add_columns(connection: Connection, table: Table, *names: str) -> None:
    """Add missing columns; a table that an earlier step has just created already has them."""
    existing = _columns_of(connection, table.name)
    for name in names:
        if name not in existing:
            column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")


def _add_tables(connection: Connection, *tables: Table) -> None:
    schema.metadata.create_all(connection, tables=tables)


def _tables(*tables: Table) -> Step:
    return lambda connection: _add_tables(connection, *tables)


def _columns(table: Table, *names: str) -> Step:
    return lambda connection: _add_columns(connection, table, *names)


def _indexes(*names: str) -> Step:
    def add_missing(connection: Connection) -> None:
        for table in schema.metadata.sorted_tables:
            for index in table.indexes:
                if index.name in names:
                    index.create(connection, checkfirst=True)

    return add_missing


def _add_pairs_and_labels(connection: Connection) -> None:
    _add_tables(connection, schema.pairs, schema.labels)
    old = _columns_of(connection, "judgements")
    if "judge_key" in old:  # an earlier step has just created the table in its current form
        return
    connection.exec_driver_sql("ALTER TABLE judgements RENAME TO old_judgements")
    _add_tables(connection, schema.judgements)
    names = ", ".join(sorted(old))
    connection.exec_driver_sql(f"INSERT INTO judgements ({names}) SELECT {names} FROM old_judgements")  # noqa: S608
    connection.exec_driver_sql("DROP TABLE old_judgements")


def _add_charges(connection: Connection) -> None:
    """Add charged amounts to known costs, and number the runs in the order in which they started."""
    maybe_billed = "'stream', 'timeout', 'malformed'"
    answered = {
        "trials": f"failure_kind IS NULL OR failure_kind IN ({maybe_billed})",
        "judgements": "asked > 0",
        "pairs": "asked > 0",
    }
    for table, was_called in answered.items():
        _add_columns(connection, schema.metadata.tables[table], "charged_usd", "unknown_costs")
        connection.exec_driver_sql(  # what a call of unknown cost was charged was not stored
            f"UPDATE {table} SET unknown_costs = CASE WHEN cost_usd IS NULL AND ({was_called}) THEN 1 ELSE 0 END, "  # noqa: S608
            "charged_usd = coalesce(cost_usd, 0), cost_usd = coalesce(cost_usd, 0)"
        )
    _add_tables(connection, schema.ledgers)
    if "number" not in _columns_of(connection, "runs"):
        connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN number INTEGER NOT NULL DEFAULT 0")
    connection.exec_driver_sql("UPDATE runs SET number = (SELECT count(*) FROM runs AS r WHERE r.id <= runs.id)")


def _add_automatic(connection: Connection) -> None:
    """Mark automatic scores, given without looking at the answer; so far only their notes said so."""
    _add_columns(connection, schema.scores, "automatic")
    automatic = schema.scores.c.notes.startswith("automatic pass")
    connection.execute(update(schema.scores).where(automatic).values(automatic=True))


def _add_plan_targets(connection: Connection) -> None:
    """Add the table of each plan's targets; so far they were only inside the arms."""
    _add_tables(connection, schema.plan_targets)
    for plan_id, arms in connection.execute(select(schema.plans.c.id, schema.plans.c.arms)).all():
        rows = target_rows(plan_id, arms)
        connection.execute(delete(schema.plan_targets).where(schema.plan_targets.c.plan_id == plan_id))
        if rows:
            connection.execute(insert(schema.plan_targets), rows)


# The upgrades of existing stores, by the version that they lead to. A new store is created with the current schema.
UPGRADES: dict[int, tuple[Step, ...]] = {
    2: (_tables(schema.judgements), _columns(schema.scores, "metrics")),
    3: (_tables(schema.calibrations),),
    4: (_add_pairs_and_labels,),
    5: (_columns(schema.trials, "tool_calls", "tool_errors", "tools"),),
    6: (_tables(schema.tags),),
    7: (_tables(schema.files, schema.attachments, schema.votes),),
    8: (_tables(schema.digests), _indexes("scores_by_case")),
    9: (_add_charges,),
    10: (_columns(schema.cases, "several"),),
    11: (_add_automatic,),
    12: (_add_plan_targets,),
    13: (_columns(schema.cases, "extract"),),
    14: (_columns(schema.cases, "vars", "turns", "attach"), _tables(schema.turns, schema.plan_files)),
    15: (_indexes("trials_by_failure"),),
    16: (_tables(schema.batches, schema.batch_requests),),
    17: (_columns(schema.cases, "targets", "conditions"),),
    18: (_tables(schema.late), _indexes("trials_changed", "judgements_changed", "pairs_changed")),
    20: (),  # from then on, long traces are compressed, which earlier versions cannot read
}
# A column that needs no step of its own says in the schema since which version there is one: `info={"since": 18}`.
_LATER = [column for table in schema.metadata.sorted_tables for column in table.c if "since" in column.info]
_SAVE = "`fairtrial store check --save FILE` recovers the intact rows"
CURRENT: int = max(*UPGRADES, *(column.info["since"] for column in _LATER))


def is_current(connection: Connection) -> bool:
    """Return whether the schema is up to date."""
    return _version(connection) == CURRENT


def migrate(connection: Connection) -> None:
    """Apply the missing upgrades; refuse a store from a newer version."""
    version = _version(connection)
    if version > CURRENT:
        raise StoreError(
            f"this store was written by a newer fairtrial (schema {version}; this version supports up to {CURRENT}): "
            "upgrade fairtrial, or choose another store with --store"
        )
    if version == CURRENT:
        return
    if version == 0:
        _clear_unfinished(connection)
        schema.metadata.create_all(connection, checkfirst=False)
    else:
        for number in range(version + 1, CURRENT + 1):
            there = inspect(connection).get_table_names()  # a table that a step below creates has all its columns
            for column in _LATER:
                if column.info["since"] == number and column.table.name in there:
                    _add_columns(connection, column.table, column.name)
            for step in UPGRADES.get(number, ()):
                step(connection)
    _set_version(connection, CURRENT, new=version == 0)


def _clear_unfinished(connection: Connection) -> None:
    """Remove the empty tables of a store that an earlier version was killed while making; refuse any others."""
    names = set(inspect(connection).get_table_names())
    ours = [table for table in schema.metadata.sorted_tables if table.name in names]
    if not ours:
        return
    empty = all(connection.execute(select(*table.primary_key).limit(1)).first() is None for table in ours)
    if not empty or len(ours) < len(names):
        raise StoreError(
            "this database has tables with the names of a store's and no version of their schema: if it is a store, "
            f"{_SAVE}; otherwise choose another with --store"
        )
    schema.metadata.drop_all(connection, tables=ours)


def _version(connection: Connection) -> int:
    """Return the version of the schema; 0 for a store that has none yet."""
    if not inspect(connection).has_table("meta"):
        return 0
    value = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "schema"))
    if value is None:
        return 0
    if not _VERSION.fullmatch(str(value)):
        raise StoreError(f"the store is damaged: no fairtrial has the schema `{str(value)[:20]}`; {_SAVE}")
    return int(value)


def _set_version(connection: Connection, version: int, *, new: bool) -> None:
    if new:
        connection.execute(insert(schema.meta).values(key="schema", value=str(version)))
    else:
        connection.execute(update(schema.meta).where(schema.meta.c.key == "schema").values(value=str(version)))
