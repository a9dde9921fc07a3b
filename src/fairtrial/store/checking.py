"""Check that every row of a store can be read, and copy the intact rows of a damaged SQLite store into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote

import msgspec
from sqlalchemy import inspect, select, text

from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.core.place import COLUMNS
from fairtrial.store import schema, totals
from fairtrial.store.address import dialect_of
from fairtrial.store.migrations import CURRENT
from fairtrial.store.sqlite import Sqlite, connect_to_read, create_file, is_there
from fairtrial.store.store import Store

_STEP = 256  # rows read at a time; if that fails, half as many, down to one
_MAX_PROBLEMS = 20
_INVALID_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
    "WHERE relnamespace = current_schema()::regnamespace AND NOT (indisvalid AND indisready)"
)


class TableCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a table can be read; `lost` counts the places where a row may have been."""

    table: str
    rows: int
    lost: int = 0


class StoreCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The condition of a store."""

    path: str
    problems: list[str]
    tables: list[TableCheck]
    saved: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the store is undamaged."""
        return not self.problems and not any(table.lost for table in self.tables)


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
            with store.reading() as connection:  # only then the server finds out whether it can read every row
                rows = connection.execute(select(table).execution_options(yield_per=1000))
                tables.append(TableCheck(table=table.name, rows=sum(1 for _ in rows)))
        except StoreError as error:
            problems.append(f"{table.name}: {error}")
    return StoreCheck(path=store.path, problems=problems, tables=tables)


def check_file(path: Path, save: Path | None = None) -> StoreCheck:
    """Read every row of a store; with `save`, copy the readable ones into a new store at that path."""
    if not is_there(path) or not path.is_file():
        raise StoreError(f"there is no store at {path}")
    if save is not None and save.exists():
        raise FairtrialError(f"{save} already exists: choose a file that does not exist")
    with closing(connect_to_read(path)) as source:
        problems = _integrity(source)
        try:
            tables = _tables(source)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} cannot be read at all ({error}): its list of tables is damaged") from None
        if not tables:
            raise StoreError(f"{path} is not a fairtrial store: choose another with --store")
        if save is None:
            checks = [_read_table(source, name, None) for name in tables]
        else:
            create_file(save)
            with closing(sqlite3.connect(save)) as copy:
                _copy_schema(source, copy)
                checks = [_read_table(source, name, copy) for name in tables]
                # Where the schema's version was lost, it is taken for the current one.
                copy.execute("DELETE FROM meta WHERE key = 'schema' AND (value GLOB '*[^0-9]*' OR value < '1')")
                copy.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('schema', ?)", (str(CURRENT),))
                copy.commit()
            store = Store(str(save))  # upgrades what an older version wrote
            _drop_orphans(store)
            _reopen_runs(store)
    return StoreCheck(path=str(path), problems=problems, tables=checks, saved=str(save) if save else None)


def _copy_schema(source: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Create the tables and indexes of the source: its rows fit no others, if an older version wrote them."""
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type = 'index'"
    for (statement,) in source.execute(query).fetchall():
        copy.execute(statement)


def _drop_orphans(store: Store) -> None:
    """Delete scores and other rows whose answer is lost: the question will be asked again."""
    same = " AND ".join(f"t.{name} = o.{name}" for name in ("run_id", *COLUMNS))
    with store.writing() as connection:
        for table in ("scores", "judgements", "labels", "attachments"):
            orphans = f"DELETE FROM {table} AS o WHERE NOT EXISTS (SELECT 1 FROM trials AS t WHERE {same})"  # noqa: S608
            connection.exec_driver_sql(orphans)


def _reopen_runs(store: Store) -> None:
    """Mark completed runs that have lost answers as interrupted, so that they can be resumed."""
    for run in store.runs():
        planned = totals.planned_trials(store, run.plan_id, store.arms(store.plan(run.plan_id)))
        scored = sum(arm.scored for arm in totals.arm_totals(store, run.id, run.scoring).values())
        if run.status == "completed" and scored < sum(planned):
            store.set_run(run.id, status="interrupted", reason="recovered from a damaged store")
    store.close()


def _integrity(source: sqlite3.Connection) -> list[str]:
    try:
        problems = [row[0] for row in source.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if problems == ["ok"] else problems


def _tables(source: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [row[0] for row in source.execute(query)]


def _read_table(source: sqlite3.Connection, table: str, copy: sqlite3.Connection | None) -> TableCheck:
    lost = 0
    rows = 0
    names = [row[1] for row in source.execute(f'PRAGMA table_info("{table}")')]
    columns = ", ".join(f'"{name}"' for name in names)
    placeholders = ", ".join("?" for _ in names)
    for row in _rows(source, table, columns):
        if row is None:
            lost += 1
            continue
        rows += 1
        if copy is not None:  # rows that a new store already has, such as its version, are replaced
            copy.execute(f'INSERT OR REPLACE INTO "{table}" ({columns}) VALUES ({placeholders})', row)  # noqa: S608
    return TableCheck(table=table, rows=rows, lost=lost)


def _rows(source: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[object, ...] | None]:
    """Yield every row in the order of row ids, and None for every row id that cannot be read."""
    try:
        first, last = source.execute(f'SELECT min(rowid), max(rowid) FROM "{table}"').fetchone()  # noqa: S608
    except sqlite3.DatabaseError:
        yield None
        return
    if first is None:
        return
    query = f'SELECT {columns} FROM "{table}" WHERE rowid BETWEEN ? AND ?'  # noqa: S608
    ranges = [(start, min(start + _STEP - 1, last)) for start in range(first, last + 1, _STEP)][::-1]
    while ranges:
        low, high = ranges.pop()
        try:
            yield from source.execute(query, (low, high)).fetchall()
        except sqlite3.DatabaseError:
            if low == high:
                yield None
                continue
            middle = (low + high) // 2
            ranges += [(middle + 1, high), (low, middle)]
