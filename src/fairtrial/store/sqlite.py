"""SQLite: a store in one file, with locks in a folder next to it.

Where the file or its folder cannot be written, as on a read-only medium or in the folder of another user, the store is
read as it is: SQLite's log needs files next to the store, even for readers.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from sqlalchemy.pool import NullPool

from fairtrial.core.errors import StoreError, StoreLockedError
from fairtrial.store.dialect import InsertRows, Lock, bad_row, damaged
from fairtrial.store.waiting import current, note

PATIENCE = 30  # seconds that a statement waits for another program's lock
_PAUSE = 0.02  # seconds
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY)  # not if waiting cannot help, as within a transaction


class Sqlite:
    """A store in a SQLite file."""

    name = "sqlite"
    reads_all = False

    def __init__(self, path: Path) -> None:
        self.path, self.place, self.address = path, str(path), str(path)
        self._has_log = False  # whether we know that the file has a write-ahead log

    def open(self, *, create: bool) -> Engine:
        path = self.path
        there = is_there(path)
        if path.is_dir():
            raise StoreError(
                f"{path} is a folder: give the path of the store in it, such as {path}/.fairtrial/fairtrial.db"
            )
        if not there:
            if not create:
                raise StoreError(
                    f"there is no store at {path}; `fairtrial run SUITE` creates one, or choose another with --store"
                )
            create_file(path)
        url = URL.create("sqlite", database=str(path))
        if can_be_written(path):
            engine = create_engine(url)
        else:  # somebody else may write it meanwhile: each connection finds out anew how it can be read
            engine = create_engine(url, creator=lambda: connect_to_read(path), poolclass=NullPool)
        event.listen(engine, "connect", _configure)
        event.listen(engine, "do_execute", _execute)
        event.listen(engine, "invalidate", _roll_back)
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
            return _is_held(self._locks() / f"{name}.lock")

    def keep_lock(self, lock: Lock) -> None:
        """Do nothing: a lock file is held as long as its process lives."""

    @contextmanager
    def transaction(self, engine: Engine) -> Iterator[Connection]:
        """Be the only writer from the start; the driver by itself begins no transaction before `CREATE TABLE`."""
        with engine.begin() as connection:
            if (
                not self._has_log
            ):  # so that readers and the writer do not block each other, whoever opens it from now on
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                self._has_log = True
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def mark(self, connection: Connection) -> None:
        """Return nothing: a file is not replaced by an older one under our hands."""

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
        reason = " ".join(str(error.orig).split())
        if any(words in reason.lower() for words in _DAMAGED):
            return damaged(self, reason if len(reason) <= _SHORT else f"{reason[:_SHORT]}…")
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


def is_there(path: Path) -> bool:
    """Return whether there is anything at this path; refuse one in a folder that we may not look into."""
    try:
        return path.exists()
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at: {error.strerror}; choose another store with --store") from None


def can_be_written(path: Path) -> bool:
    """Return whether a store's file can be written, and its log next to it."""
    file = path.resolve()
    return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a file that is not written, wherever it is; what is only in its log is read too, or an error is raised."""
    file = path.resolve()
    log = file.with_name(f"{file.name}-wal")
    if can_be_written(path) or (log.exists() and log.stat().st_size):
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        if not can_be_written(path):
            _read_log(connection, path, log)
        return connection
    # Without a log, nobody is writing.
    return sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True, check_same_thread=False)


def _read_log(connection: sqlite3.Connection, path: Path, log: Path) -> None:
    """Find out whether the log can be read; that needs its index, which cannot be made here."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if not any(words in str(error) for words in ("unable to open", "readonly")):
            raise
        raise StoreError(
            f"the newest rows of the store {path} are in {log.name} next to it, which cannot be read where nothing can "
            "be written: copy both files to a folder of your own, and read the store there"
        ) from None


def _is_held(lock: Path) -> bool:
    """Return whether another process holds a lock file that we can only read; False if we cannot even read it."""
    if sys.platform == "win32":
        return False
    import fcntl  # which Windows does not have

    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _configure(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")  # a commit survives a power cut; group commits make it cheap
    cursor.execute("PRAGMA busy_timeout=0")  # `_execute` waits: SQLite itself would not notice Ctrl-C
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _roll_back(connection: sqlite3.Connection, *_: Any) -> None:
    """End the transaction of a connection that Ctrl-C has interrupted.

    Closed, it would hold the store's lock as long as its statement is in a traceback, also against what tidies up.
    """
    with suppress(sqlite3.Error):
        connection.rollback()


def _execute(cursor: sqlite3.Cursor, statement: str, parameters: Any, _: Any) -> bool:
    """Execute a statement; while another program has locked the store, execute it again."""
    try:
        cursor.execute(statement, parameters)
    except sqlite3.OperationalError as error:
        _execute_again(error, cursor, statement, parameters)
    return True


def _execute_again(error: sqlite3.OperationalError, cursor: sqlite3.Cursor, statement: str, parameters: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        if error.sqlite_errorcode not in _BUSY or time.monotonic() > deadline or current().over:
            raise error
        note(StoreLockedError.reason)
        time.sleep(_PAUSE)
        try:
            cursor.execute(statement, parameters)
        except sqlite3.OperationalError as failed:
            error = failed
        else:
            return


_SHORT = 100
# What SQLite says of a file whose pages, schema or texts are not what anything has written.
_DAMAGED = (
    "malformed",
    "could not decode",
    "unsupported file format",
    "no such column",
    "no such table",
    "datatype mismatch",
)
_MESSAGES = {
    "disk is full": "the disk with the store {path} is full: free some space; what was stored is safe "
    "(`fairtrial resume latest`)",
    "disk i/o": "the disk with the store {path} cannot be read or written: check whether it is full, failing or "
    "disconnected; what was stored is safe (`fairtrial resume latest`)",
    "not a database": "{path} is not a fairtrial store, or its beginning is damaged: choose another with --store, or "
    "look at it with `fairtrial store check --store {typed}`",
    "readonly": "the store {path} cannot be written: check its permissions, or choose another with --store",
    "unable to open": "the store {path} cannot be opened: check its permissions, or choose another with --store",
    "locked": "the store {path} is locked by another program for more than {patience} s: stop it, then try again",
}
