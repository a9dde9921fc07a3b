"""Read what can be read of a SQLite file that may be damaged anywhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.migrations import CURRENT
from fairtrial.store.sqlite import connect_to_read
from fairtrial.text.printable import one_line

# What reading a damaged file may raise; a message of SQLite that quotes damaged bytes cannot even be decoded.
BROKEN = (sqlite3.Error, MemoryError, UnicodeDecodeError)
_LAST = 2**63 - 1  # the highest row id


def open_damaged(path: Path) -> sqlite3.Connection:
    """Open a file to be read, without being written; damaged texts in it do not end the reading."""
    try:
        source = connect_to_read(path)
    except BROKEN as error:
        raise _unreadable(path, error) from None
    source.text_factory = lambda content: content.decode("utf-8", "surrogateescape")  # so that it can be counted
    return source


def _unreadable(path: Path, error: BaseException) -> StoreError:
    if "locked" in str(error):
        return StoreError(f"the store {path} is locked by another program: try again when it has ended")
    return StoreError(
        f"{path} cannot be read at all ({one_line(str(error))}): it is not a fairtrial store, or its beginning, which "
        "lists its tables, is damaged; choose another with --store, or a copy of it"
    )


def tables_in(source: sqlite3.Connection, path: Path) -> list[str]:
    """Return the names of the tables; refuse a file that has none."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    try:
        names = [row[0] for row in source.execute(query)]
    except BROKEN as error:
        raise _unreadable(path, error) from None
    if not names:
        raise StoreError(
            f"there is nothing in {path}: whatever was making a store there was stopped, and the next command that "
            "writes makes it; choose another with --store"
        )
    return names


def version_of(source: sqlite3.Connection, names: Sequence[str]) -> tuple[int, list[str]]:
    """Return the version of the schema, as far as the tables tell where it was lost, and what is wrong with it."""
    try:
        found = source.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() if "meta" in names else None
    except BROKEN:
        found = None
    value = str(found[0]) if found else ""
    if value in map(str, range(1, CURRENT + 1)):
        return int(value), []
    if found is None and not any(_count(source, name) for name in names):
        return CURRENT, []  # it was being made when its process was killed
    return CURRENT, [f"the version of its schema is `{value[:20]}`" if found else "the version of its schema is lost"]


def _count(source: sqlite3.Connection, table: str) -> int:
    try:
        return int(source.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT 1)').fetchone()[0])  # noqa: S608
    except BROKEN:
        return 1


def missing_parts(source: sqlite3.Connection, names: Sequence[str], version: int) -> list[str]:
    """Return which tables and columns of the current version are not there."""
    problems = []
    for table in schema.metadata.sorted_tables if version == CURRENT else ():
        columns = columns_of(source, table.name) if table.name in names else []
        lacking = [str(column.name) for column in table.c if column.name not in columns]
        if lacking:
            what = f"{table.name} lacks {', '.join(lacking)}" if columns else f"the table {table.name} is not there"
            problems.append(what)
    return problems


def columns_of(source: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns; none if they cannot be read."""
    try:
        return [row[1] for row in source.execute(f'PRAGMA table_info("{table}")')]
    except BROKEN:
        return []


def rows_in(source: sqlite3.Connection, table: str, names: Sequence[str]) -> Iterator[Sequence[Any] | int]:
    """Yield every row in the order of row ids and, where rows cannot be read, how many row ids that concerns."""
    columns = ", ".join(f'"{name}"' for name in names)
    query = f'SELECT rowid, {columns} FROM "{table}" WHERE rowid >= ? ORDER BY rowid'  # noqa: S608
    start, last, skip = -_LAST, 0, 1  # row ids begin with 1
    while True:
        begun = last
        try:
            for rowid, *row in source.execute(query, (start,)):
                if rowid >= start:  # in a damaged table they may be in any order
                    last = max(last, rowid)
                    yield row
        except BROKEN:
            reached = max(last, start - 1)
            following = _next_readable(source, query, reached)
            if following is None:
                yield 1
                return
            if following > reached + 1:
                yield following - reached - 1
            # By itself: SQLite looks one row ahead, and it may be the last one before the damage.
            for rowid, *row in source.execute(f"{query} LIMIT 1", (following,)).fetchall():
                if rowid >= following:
                    last = rowid
                    yield row
            skip = 1 if last > begun else 2 * skip  # what can be read there may lead to the same damage
            start = max(start + skip, following, last + 1)
        else:
            return


def _next_readable(source: sqlite3.Connection, query: str, last: int) -> int | None:
    """Return the first row id after a damaged place from which rows can be read again, if there is one."""

    def is_readable(start: int) -> bool:
        try:
            source.execute(f"{query} LIMIT 1", (start,)).fetchall()
        except BROKEN:
            return False
        return True

    low, step = last, 1  # at `low`, nothing can be read
    while low + step <= _LAST and not is_readable(low + step):
        low, step = low + step, 2 * step
    if low + step > _LAST:
        return None
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high
