"""Insert statements for the hot path, compiled once per process and passed straight to the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Table, func, literal_column

from fairtrial.store import schema
from fairtrial.store.dialect import Dialect, InsertRows
from fairtrial.store.hash_column import CHANGED, HASH
from fairtrial.store.row_hashes import hash_changed, with_hashes

Rows = dict[str, list[dict[str, Any]]]  # by table
Build = Callable[[Dialect, Table], Any]  # builds a statement for one kind of database


class PreparedInsert:
    """An insert statement for rows that have every column of the table; their hashes are made here."""

    def __init__(self, table: Table, build: Build, *, adding: bool = False, hashed: bool = False) -> None:
        """`adding` says that a row may change one that is there; `hashed`, that rows come with the hashes they had."""
        self._table, self._build, self._adding, self._hashed = table, build, adding, hashed
        self._prepared: dict[str, InsertRows] = {}  # by the dialect's name

    def execute(self, connection: Connection, dialect: Dialect, rows: list[dict[str, Any]]) -> None:
        """Insert the rows."""
        if dialect.name not in self._prepared:
            statement = self._build(dialect, self._table)
            self._prepared[dialect.name] = dialect.prepare_insert(self._table, statement, connection.dialect)
        self._prepared[dialect.name](connection, rows if self._hashed else with_hashes(self._table, rows))
        if self._adding:
            hash_changed(connection, self._table)


def upsert_replacing(dialect: Dialect, table: Table, *added: str) -> Any:
    """Return an upsert that replaces the row with the same key; the columns `added` are added up."""
    statement = dialect.insert(table)
    new = statement.excluded
    changes: dict[str, Any] = {column.name: new[column.name] for column in table.c if not column.primary_key}
    for name in added:
        changes[name] = func.coalesce(table.c[name], literal_column("0")) + new[name]
    if added and HASH in table.c:
        changes[HASH] = literal_column(str(CHANGED))
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=changes)


def insert_missing(dialect: Dialect, table: Table) -> Any:
    """Return an insert that keeps an existing row."""
    return dialect.insert(table).on_conflict_do_nothing()


def _adding(*counts: str) -> Build:
    """Return what builds an upsert for retries: these counts and the cost of all attempts are added up."""
    return lambda dialect, table: upsert_replacing(dialect, table, *counts, *schema.COSTS)


INSERT_CASES = PreparedInsert(schema.cases, lambda dialect, table: dialect.insert(table))
_BUILDS: dict[Table, Build] = {
    schema.trials: _adding("attempts"),
    schema.turns: upsert_replacing,
    schema.scores: upsert_replacing,
    schema.labels: upsert_replacing,
    schema.judgements: _adding("asked"),
    schema.files: insert_missing,
    schema.attachments: upsert_replacing,
    schema.votes: upsert_replacing,
    schema.pairs: _adding("asked"),
    schema.digests: upsert_replacing,
    schema.ledgers: _adding(),
    schema.batches: upsert_replacing,
    schema.batch_requests: upsert_replacing,
}
_ADDING = (schema.trials, schema.judgements, schema.pairs)
UPSERTS = {table.name: PreparedInsert(table, build, adding=table in _ADDING) for table, build in _BUILDS.items()}


def write_rows(connection: Connection, dialect: Dialect, rows: Rows) -> None:
    """Write rows, by table."""
    if "files" in rows:
        dialect.serialise(connection, "files", shared=True)
    for table, items in rows.items():
        UPSERTS[table].execute(connection, dialect, items)
