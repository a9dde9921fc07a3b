"""Prove the rows of a store by their hashes, and copy the whole rows of a damaged SQLite store into a new one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec
from sqlalchemy import inspect, select, text
from sqlalchemy.exc import DBAPIError

from fairtrial.core.errors import FairtrialError, RunLostError, StoreBusyError, StoreError
from fairtrial.store import schema
from fairtrial.store.address import dialect_of
from fairtrial.store.damaged_file import BROKEN, columns_of, missing_parts, open_damaged, rows_in, tables_in, version_of
from fairtrial.store.dialect import damaged
from fairtrial.store.hash_column import HASH
from fairtrial.store.recovery import complete, make_tables
from fairtrial.store.row_checks import RowCheck, mended
from fairtrial.store.row_hashes import where
from fairtrial.store.sqlite import Sqlite, create_file, is_there
from fairtrial.store.store import Store

_MAX_PROBLEMS = 20
MOST_NAMED = 100  # damaged rows
_NEEDED = ("plans", "runs")  # without which rows that are whole could not be found: better with a damaged text
_INVALID_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
    "WHERE relnamespace = current_schema()::regnamespace AND NOT (indisvalid AND indisready)"
)


class TableCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a table is whole; `lost` counts the places where a row may have been."""

    table: str
    rows: int  # that are whole
    lost: int = 0
    damaged: int = 0  # rows that can be read, and are not as they were written
    unproven: int = 0  # of `rows`: those without a hash, which an earlier version wrote


class StoreCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The condition of a store."""

    path: str
    problems: list[str]
    tables: list[TableCheck]
    damaged: list[str] = []  # the first rows that are not as they were written: which, and what is wrong
    saved: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the store is undamaged."""
        return not self.problems and not any(table.lost or table.damaged for table in self.tables)


class _Tally:
    """Counts the rows of a table."""

    def __init__(self, table: str, named: list[str]) -> None:
        self._table, self._named, self._check = table, named, RowCheck(table)
        self.lost = self._rows = self._damaged = self._unproven = 0

    def is_whole(self, row: dict[str, Any]) -> bool:
        """Count a row; return whether it is whole."""
        problem = self._check.problem(row)
        if problem is not None:
            self.refuse(row, problem)
            return False
        self._rows += 1
        self._unproven += self._check.hashed and row.get(HASH) is None
        return True

    def fits(self, row: dict[str, Any]) -> bool:
        """Return whether a store can have this row."""
        return self._check.problem(row) is None

    def refuse(self, row: dict[str, Any], problem: str) -> None:
        """Count a row that is not whole."""
        self._damaged += 1
        if len(self._named) < MOST_NAMED:
            self._named.append(f"{self._table}{where(row)}: {problem}")

    def not_kept(self, row: dict[str, Any], problem: str) -> None:
        """Count a row that was counted as whole, and does not fit into a store."""
        self._rows -= 1
        self.refuse(row, problem)

    def result(self) -> TableCheck:
        """Return the counts."""
        return TableCheck(
            table=self._table, rows=self._rows, lost=self.lost, damaged=self._damaged, unproven=self._unproven
        )


def check_store(address: str | None, save: Path | None = None) -> StoreCheck:
    """Prove every row of a store; with `save`, copy the whole ones of a SQLite store into a new one at that path."""
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


def damage_behind(error: Exception, address: str | None) -> StoreError | None:
    """Return the error that takes the place of an unforeseen one, if that comes from a damaged store."""
    of_database = isinstance(error, StoreError) and isinstance(error.__cause__, DBAPIError)
    foreseen = isinstance(error, FairtrialError) and not of_database
    if foreseen or isinstance(error, OSError | StoreBusyError | RunLostError) or "store check" in str(error):
        return None
    dialect = dialect_of(address)
    if not isinstance(dialect, Sqlite) or not dialect.path.is_file():
        return None
    try:
        if check_file(dialect.path).whole:
            return None
        what = str(error) if isinstance(error, StoreError) else "some of its rows are not as they were written"
    except StoreError as unreadable:
        what = str(unreadable)
    return damaged(dialect, what)


def _check_database(store: Store) -> StoreCheck:
    problems: list[str] = []
    named: list[str] = []
    tables = []
    with store.reading() as connection:
        known = inspect(connection)
        existing = set(known.get_table_names())
        for table in schema.metadata.sorted_tables:
            columns = {column["name"] for column in known.get_columns(table.name)} if table.name in existing else set()
            missing = [name for name in table.c.keys() if name not in columns]  # noqa: SIM118
            problems += [f"{table.name} lacks {', '.join(missing)}"] if missing else []
        problems += [f"the index {name} is not usable" for name in connection.scalars(text(_INVALID_INDEXES))]
    for table in schema.metadata.sorted_tables if not problems else ():
        tally = _Tally(table.name, named)
        try:
            with store.reading() as connection:  # only then the server finds out whether it can read every row
                for row in connection.execute(select(table).execution_options(yield_per=1000)).mappings():
                    tally.is_whole(dict(row))
            tables.append(tally.result())
        except StoreError as error:
            problems.append(f"{table.name}: {error}")
    return StoreCheck(path=store.path, problems=problems, tables=tables, damaged=named)


def check_file(path: Path, save: Path | None = None) -> StoreCheck:
    """Prove every row of a store; with `save`, copy the whole ones into a new store at that path."""
    if not is_there(path) or not path.is_file():
        raise StoreError(f"there is no store at {path}")
    if save is not None and save.exists():
        raise FairtrialError(f"{save} already exists: choose a file that does not exist")
    with closing(open_damaged(path)) as source:
        names = tables_in(source, path)
        version, problems = version_of(source, names)
        problems += missing_parts(source, names, version) + _integrity(source)
        named: list[str] = []
        if save is None:
            checks = [_check_table(source, name, named) for name in names]
        else:
            create_file(save)
            with closing(sqlite3.connect(save)) as copy:
                make_tables(source, copy, save, version)
                checks = [_check_table(source, name, named, copy) for name in names]
                copy.execute("DELETE FROM meta WHERE key = 'schema'")
                copy.execute("INSERT INTO meta (key, value) VALUES ('schema', ?)", (str(version),))
                copy.commit()
            store = Store(str(save))  # upgrades what an older version wrote
            complete(store)
            store.close()
    return StoreCheck(
        path=str(path), problems=problems, tables=checks, damaged=named, saved=str(save) if save else None
    )


def _integrity(source: sqlite3.Connection) -> list[str]:
    try:
        problems = [row[0] for row in source.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
    except BROKEN as error:
        return [str(error)]
    return [] if problems == ["ok"] else problems


def _check_table(
    source: sqlite3.Connection, table: str, named: list[str], copy: sqlite3.Connection | None = None
) -> TableCheck:
    tally = _Tally(table, named)
    names = columns_of(source, table)
    if not names:
        tally.lost = 1
        return tally.result()
    kept = names if copy is None else [name for name in names if name in columns_of(copy, table)]
    columns = ", ".join(f'"{name}"' for name in kept)
    into = f'INSERT OR REPLACE INTO "{table}" ({columns}) VALUES ({", ".join("?" * len(kept))})'  # noqa: S608
    for values in rows_in(source, table, names):
        if isinstance(values, int):
            tally.lost += values
            continue
        row = dict(zip(names, values, strict=True))
        whole = tally.is_whole(row)
        if not whole and table in _NEEDED:
            row = mended(row)
            whole = tally.fits(row)
        if whole and copy is not None and kept:
            try:
                copy.execute(into, [row[name] for name in kept])
            except (sqlite3.Error, UnicodeError, OverflowError) as error:
                tally.not_kept(row, str(error))
    return tally.result()
