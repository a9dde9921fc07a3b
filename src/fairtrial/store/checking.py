"""Check that every row of a store can be read."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from sqlalchemy import Table, inspect, select, text

from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.store import schema
from fairtrial.store.address import dialect_of
from fairtrial.store.salvage import StoreCheck, TableCheck, check_file
from fairtrial.store.sqlite import Sqlite
from fairtrial.store.store import Store

_INVALID_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
    "WHERE relnamespace = current_schema()::regnamespace AND NOT (indisvalid AND indisready)"
)


def check_store(address: str | None, save: Path | None = None) -> StoreCheck:
    """Read every row of a store; with `save`, copy the readable ones of a SQLite store into a new one at that path."""
    dialect = dialect_of(address)
    if isinstance(dialect, Sqlite):
        return check_file(dialect.path, save)
    if save is not None:
        raise FairtrialError(
            "--save recovers damaged SQLite files; copy this store's runs with "
            f"`fairtrial store copy STORE {quote(str(save))}`"
        )
    store = Store(address, create=False)
    try:
        return _check_database(store)
    finally:
        store.close()


def _check_database(store: Store) -> StoreCheck:
    problems, tables = [], []
    with store.reading() as connection:
        known = inspect(connection)
        existing = set(known.get_table_names())
        for table in schema.metadata.sorted_tables:
            columns = {column["name"] for column in known.get_columns(table.name)} if table.name in existing else set()
            missing = [name for name in table.c.keys() if name not in columns]  # noqa: SIM118
            problems += [f"{table.name} lacks {', '.join(missing)}"] if missing else []
        problems += [f"the index {name} is not usable" for name in connection.scalars(text(_INVALID_INDEXES))]
    for table in schema.metadata.sorted_tables if not problems else ():
        try:
            tables.append(TableCheck(table=table.name, rows=_read_all(store, table)))
        except StoreError as error:
            problems.append(f"{table.name}: {error}")
    return StoreCheck(path=store.path, problems=problems, tables=tables)


def _read_all(store: Store, table: Table) -> int:
    """Read every row, as only then the server finds out whether it can; return how many there are."""
    with store.reading() as connection:
        return sum(1 for _ in connection.execute(select(table).execution_options(yield_per=1000)))
