"""Prove the rows of a store by their hashes, and copy the whole rows of a damaged SQLite store into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec
from sqlalchemy import create_engine, inspect, select, text, update

from fairtrial.core.errors import FairtrialError, RunLostError, StoreBusyError, StoreError
from fairtrial.core.place import COLUMNS
from fairtrial.store import rows, schema, totals
from fairtrial.store.address import dialect_of
from fairtrial.store.dialect import damaged
from fairtrial.store.migrations import CURRENT
from fairtrial.store.row_checks import RowCheck, mended
from fairtrial.store.row_hashes import where
from fairtrial.store.sqlite import Sqlite, connect_to_read, create_file, is_there
from fairtrial.store.statements import INSERT_CASES
from fairtrial.store.store import UNFINISHED, Store

_MAX_PROBLEMS = 20
MOST_NAMED = 100  # damaged rows
_LAST = 2**63 - 1  # the highest row id
_LOST = "(this case was damaged and is lost)"  # its question, and the only target that is asked it
_MANY_LOST = 10_000  # cases; more than that were never there
_NEEDED = ("plans", "runs")  # without which rows that are whole could not be found: better with a damaged text
_BROKEN = (sqlite3.Error, MemoryError)  # what reading a damaged file may raise
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
        self._unproven += self._check.hashed and row.get(schema.HASH) is None
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
    """Return what is to be said instead of an error that nobody has foreseen, if it comes from a damaged store."""
    foreseen = isinstance(error, FairtrialError) and not isinstance(error, StoreError)
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
    with closing(_opened(path)) as source:
        names = _tables(source, path)
        version, problems = _version(source, names)
        problems += _missing(source, names, version) + _integrity(source)
        named: list[str] = []
        if save is None:
            checks = [_check_table(source, name, named) for name in names]
        else:
            create_file(save)
            with closing(sqlite3.connect(save)) as copy:
                _make_tables(source, copy, save, version)
                checks = [_check_table(source, name, named, copy) for name in names]
                copy.execute("DELETE FROM meta WHERE key = 'schema'")
                copy.execute("INSERT INTO meta (key, value) VALUES ('schema', ?)", (str(version),))
                copy.commit()
            store = Store(str(save))  # upgrades what an older version wrote
            _drop_orphans(store)
            _replace_lost_cases(store)
            _reopen_runs(store)
            store.close()
    return StoreCheck(
        path=str(path), problems=problems, tables=checks, damaged=named, saved=str(save) if save else None
    )


def _opened(path: Path) -> sqlite3.Connection:
    try:
        source = connect_to_read(path)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None
    source.text_factory = lambda content: content.decode("utf-8", "surrogateescape")  # so that it can be counted
    return source


def _unreadable(path: Path, error: BaseException) -> StoreError:
    if "locked" in str(error):
        return StoreError(f"the store {path} is locked by another program: try again when it has ended")
    return StoreError(
        f"{path} cannot be read at all ({error}): it is no fairtrial store, or its beginning with the list of tables "
        "is damaged; choose another with --store, or a copy of it"
    )


def _tables(source: sqlite3.Connection, path: Path) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    try:
        names = [row[0] for row in source.execute(query)]
    except _BROKEN as error:
        raise _unreadable(path, error) from None
    if not names:
        raise StoreError(f"{path} is not a fairtrial store: choose another with --store")
    return names


def _version(source: sqlite3.Connection, names: Sequence[str]) -> tuple[int, list[str]]:
    """Return the version of the schema, as far as the tables tell where it was lost, and what is wrong with it."""
    try:
        found = source.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() if "meta" in names else None
    except _BROKEN:
        found = None
    value = str(found[0]) if found else ""
    if value.isascii() and value.isdecimal() and str(int(value)) == value and 1 <= int(value) <= CURRENT:
        return int(value), []
    if found is None and not any(_count(source, name) for name in names):
        return CURRENT, []  # it was being made when its process was killed
    return CURRENT, [f"the version of its schema is `{value[:20]}`" if found else "the version of its schema is lost"]


def _count(source: sqlite3.Connection, table: str) -> int:
    try:
        return int(source.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT 1)').fetchone()[0])  # noqa: S608
    except _BROKEN:
        return 1


def _missing(source: sqlite3.Connection, names: Sequence[str], version: int) -> list[str]:
    """Return which tables and columns of the current version are not there."""
    problems = []
    for table in schema.metadata.sorted_tables if version == CURRENT else ():
        columns = _columns(source, table.name) if table.name in names else []
        lacking = [str(column.name) for column in table.c if column.name not in columns]
        if lacking:
            what = f"{table.name} lacks {', '.join(lacking)}" if columns else f"the table {table.name} is not there"
            problems.append(what)
    return problems


def _columns(source: sqlite3.Connection, table: str) -> list[str]:
    try:
        return [row[1] for row in source.execute(f'PRAGMA table_info("{table}")')]
    except _BROKEN:
        return []


def _integrity(source: sqlite3.Connection) -> list[str]:
    try:
        problems = [row[0] for row in source.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
    except _BROKEN as error:
        return [str(error)]
    return [] if problems == ["ok"] else problems


def _make_tables(source: sqlite3.Connection, copy: sqlite3.Connection, save: Path, version: int) -> None:
    """Create the tables: ours, or those of the source if an older version made them, because its rows fit no others."""
    if version == CURRENT:
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(save))
        schema.metadata.create_all(engine)
        engine.dispose()
        return
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
        empty = {str(column.name): None for column in schema.content(cases)}
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


def _check_table(
    source: sqlite3.Connection, table: str, named: list[str], copy: sqlite3.Connection | None = None
) -> TableCheck:
    tally = _Tally(table, named)
    names = _columns(source, table)
    if not names:
        tally.lost = 1
        return tally.result()
    kept = names if copy is None else [name for name in names if name in _columns(copy, table)]
    columns = ", ".join(f'"{name}"' for name in kept)
    into = f'INSERT OR REPLACE INTO "{table}" ({columns}) VALUES ({", ".join("?" * len(kept))})'  # noqa: S608
    for values in _rows(source, table, names):
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


def _rows(source: sqlite3.Connection, table: str, names: Sequence[str]) -> Iterator[Sequence[Any] | int]:
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
        except _BROKEN:
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
        except _BROKEN:
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
