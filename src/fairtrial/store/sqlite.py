"""SQLite: a store in one file, with locks in a folder next to it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from fairtrial.core.errors import StoreError, StoreLockedError
from fairtrial.store.dialect import InsertRows, Lock, bad_row

PATIENCE = 30  # seconds that a statement waits for another program's lock
_PAUSE = 0.02  # seconds


class Sqlite:
    """A store in a SQLite file."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path, self.place, self.address = path, str(path), str(path)

    def open(self, *, create: bool) -> Engine:
        path = self.path
        if path.is_dir():
            raise StoreError(
                f"{path} is a folder: give the path of the store in it, such as {path}/.fairtrial/fairtrial.db"
            )
        if not path.exists():
            if not create:
                raise StoreError(
                    f"there is no store at {path}; `fairtrial run SUITE` creates one, or choose another with --store"
                )
            create_file(path)
        engine = create_engine(URL.create("sqlite", database=str(path)))
        event.listen(engine, "connect", _configure)
        return engine

    def lock(self, name: str) -> FileLock:
        """Return a lock file in a folder next to the store."""
        folder = self._locks()
        try:
            for part in (folder.parent, folder):  # `parents=True` would let others look into the first
                part.mkdir(mode=0o700, exist_ok=True)
            (folder / f"{name}.lock").touch()
        except OSError:
            raise StoreError(f"{folder} cannot be written: check its permissions, or choose another store") from None
        return FileLock(folder / f"{name}.lock", is_singleton=False)

    def _locks(self) -> Path:
        """Return the folder of this store's locks: others may be next to it, or be links to it."""
        path = self.path.resolve()
        return path.parent / "locks" / path.name

    def is_locked(self, name: str) -> bool:
        """Return whether the lock cannot be acquired."""
        try:
            with self.lock(name).acquire(timeout=0):
                return False
        except Timeout:
            return True
        except StoreError:
            return False  # where nothing can be written, nobody holds a lock

    def keep_lock(self, lock: Lock) -> None:
        """Do nothing: a lock file is held as long as its process lives."""

    @contextmanager
    def transaction(self, engine: Engine) -> Iterator[Connection]:
        """Be the only writer from the start; the driver by itself begins no transaction before `CREATE TABLE`."""
        with engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def serialise(self, connection: Connection, name: str, *, shared: bool = False) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def insert(self, table: Table) -> Any:
        return insert(table)

    def prepare_insert(self, table: Table, statement: Any, driver: SqlDialect) -> InsertRows:
        """Return a function that passes rows straight to the driver, which is 3 times as fast."""
        compiled = statement.compile(dialect=driver)
        sql, values = str(compiled), itemgetter(*compiled.positiontup)

        def insert_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
            connection.exec_driver_sql(sql, [values(row) for row in rows])

        return insert_rows

    def loaded(self, engine: Engine) -> None:
        """Do nothing: our queries are planned by their indexes alone."""

    def explain(self, error: DBAPIError) -> StoreError:
        if isinstance(error, DataError | IntegrityError | InterfaceError | ProgrammingError):
            return bad_row(self, error.orig or error)
        reason = str(error.orig)
        kind = StoreLockedError if "locked" in reason.lower() else StoreError
        for words, message in _MESSAGES.items():
            if words in reason.lower():
                return kind(message.format(path=self.place, typed=quote(self.place), patience=PATIENCE))
        return kind(f"the store {self.place} cannot be used: {reason}")


def create_file(path: Path) -> None:
    """Create an empty file that only its owner can access; SQLite creates its other files with the same permissions."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the store's folder {folder} cannot be created: {error.strerror}") from None
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"the store {path} cannot be written: {error.strerror}; choose another with --store") from None


def _configure(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    _use_log(cursor)
    cursor.execute("PRAGMA synchronous=FULL")  # a commit survives a power cut; group commits make it cheap
    cursor.execute(f"PRAGMA busy_timeout={1000 * PATIENCE}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_log(cursor: sqlite3.Cursor) -> None:
    """Use a write-ahead log, so that readers and the writer do not block each other.

    SQLite does not wait for others here: of programs that open a new store at the same time, all but one would fail.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


_MESSAGES = {
    "disk is full": "the disk with the store {path} is full: free some space; what was stored is safe "
    "(`fairtrial resume latest`)",
    "disk i/o": "the disk with the store {path} cannot be read or written: check whether it is full, failing or "
    "disconnected; what was stored is safe (`fairtrial resume latest`)",
    "not a database": "{path} is not a fairtrial store: choose another with --store",
    "malformed": "the store {path} is damaged: `fairtrial store check --store {typed}` shows how badly, and with "
    "--save FILE recovers the intact rows",
    "readonly": "the store {path} cannot be written: check its permissions, or choose another with --store",
    "unable to open": "the store {path} cannot be opened: check its permissions, or choose another with --store",
    "locked": "the store {path} is locked by another program for more than {patience} s: stop it, then try again",
}
