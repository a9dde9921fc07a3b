"""A damaged store: how far it can be read, and what is whole in it copied into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.store import totals
from fairtrial.store.store import Store

_STEP = 256  # rows read at a time; where that fails, halves of them, down to one
_MOST_PROBLEMS = 20


class TableCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a table can be read; `lost` are places where a row may have been."""

    table: str
    rows: int
    lost: int = 0


class StoreCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is."""

    path: str
    problems: list[str]
    tables: list[TableCheck]
    saved: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems and not any(table.lost for table in self.tables)


def check_store(path: Path, save: Path | None = None) -> StoreCheck:
    """Read every row of a store; with `save`, copy those that can be read into a new store there."""
    if not path.is_file():
        raise StoreError(f"there is no store at {path}")
    if save is not None and save.exists():
        raise FairtrialError(f"{save} exists already: name a file that does not")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source:
        problems = _integrity(source)
        try:
            tables = _tables(source)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} cannot be read at all ({error}): its list of tables is gone") from None
        if not tables:
            raise StoreError(f"{path} is not a fairtrial store: name another with --store")
        if save is None:
            found = [_read_table(source, name, None) for name in tables]
        else:
            Store(str(save)).close()
            with closing(sqlite3.connect(save)) as copy:
                found = [_read_table(source, name, copy) for name in tables]
                _drop_orphans(copy)
                copy.commit()
            _reopen_runs(Store(str(save)))
    return StoreCheck(path=str(path), problems=problems, tables=found, saved=str(save) if save else None)


def _drop_orphans(copy: sqlite3.Connection) -> None:
    """A score without its answer is worth nothing: the answer will be asked for again."""
    same = " AND ".join(f"t.{name} = o.{name}" for name in ("run_id", "case_position", "arm_position", "repeat"))
    for table in ("scores", "judgements", "labels", "attachments"):
        copy.execute(f"DELETE FROM {table} AS o WHERE NOT EXISTS (SELECT 1 FROM trials AS t WHERE {same})")  # noqa: S608


def _reopen_runs(store: Store) -> None:
    """A run that has lost answers is not complete any more, and can be resumed."""
    for run in store.runs():
        planned = totals.planned_trials(store, run.plan_id, store.arms(store.plan(run.plan_id)))
        scored = sum(arm.scored for arm in totals.arm_totals(store, run.id, run.scoring).values())
        if run.status == "completed" and scored < sum(planned):
            store.set_run(run.id, status="interrupted", reason="saved from a damaged store")
    store.close()


def _integrity(source: sqlite3.Connection) -> list[str]:
    try:
        found = [row[0] for row in source.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def _tables(source: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [row[0] for row in source.execute(query)]


def _read_table(source: sqlite3.Connection, table: str, copy: sqlite3.Connection | None) -> TableCheck:
    lost = 0
    rows = 0
    names = [row[1] for row in source.execute(f'PRAGMA table_info("{table}")')]
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("?" for _ in names)
    for found in _rows(source, table, columns):
        if found is None:
            lost += 1
            continue
        rows += 1
        if copy is not None:  # what a new store has by itself, such as its version, is replaced
            copy.execute(f'INSERT OR REPLACE INTO "{table}" ({columns}) VALUES ({marks})', found)  # noqa: S608
    return TableCheck(table=table, rows=rows, lost=lost)


def _rows(source: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[object, ...] | None]:
    """Every row by its number; None for every number at which nothing can be read."""
    try:
        first, last = source.execute(f'SELECT min(rowid), max(rowid) FROM "{table}"').fetchone()  # noqa: S608
    except sqlite3.DatabaseError:
        yield None
        return
    if first is None:
        return
    query = f'SELECT {columns} FROM "{table}" WHERE rowid BETWEEN ? AND ?'  # noqa: S608
    waiting = [(start, min(start + _STEP - 1, last)) for start in range(first, last + 1, _STEP)][::-1]
    while waiting:
        low, high = waiting.pop()
        try:
            yield from source.execute(query, (low, high)).fetchall()
        except sqlite3.DatabaseError:
            if low == high:
                yield None
                continue
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]
