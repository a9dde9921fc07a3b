"""The interface between the store and a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from shlex import quote
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, Engine, Table
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fairtrial.core.errors import BadRowError, StoreError

InsertRows = Callable[[Connection, list[dict[str, Any]]], None]


class Lock(Protocol):
    """A lock between processes, released when its process ends for any reason. A context manager."""

    def acquire(self, *, timeout: float, poll_interval: float = 0.05) -> Any:
        """Acquire the lock within `timeout` seconds, or raise `filelock.Timeout`."""

    def __enter__(self) -> Any:
        """Acquire the lock, waiting as long as necessary."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Release the lock."""


class Mark(NamedTuple):
    """Where a transaction was made: on which server, and its number there."""

    server: str
    number: int


class Dialect(Protocol):
    """One kind of database: how to open, lock and write it, and how to explain its errors."""

    name: str
    place: str  # the store's name in messages: a path, or an address without its password
    address: str  # what opens the store, with its password: never shown
    reads_all: bool  # whether its driver fetches all rows of a result at once, unless it is told otherwise

    def open(self, *, create: bool) -> Engine:
        """Open the database; raise an error if it does not exist and `create` is false."""

    def lock(self, name: str) -> Lock:
        """Return the lock with this name, shared by all users of the store."""

    def is_locked(self, name: str) -> bool:
        """Return whether any process holds the lock with this name."""

    def keep_lock(self, lock: Lock) -> None:
        """Acquire a lock again that we held and lost, if it is free."""

    def transaction(self, engine: Engine) -> AbstractContextManager[Connection]:
        """Open a transaction. If it raises no error, it is committed; if it does, nothing is."""

    def mark(self, connection: Connection) -> Mark | None:
        """Return where the open transaction is made; None if no other server can ever take this one's place."""

    def serialise(self, connection: Connection, name: str, *, shared: bool = False) -> None:
        """Let only one transaction at a time go on with this name, or those that all share it."""

    def insert(self, table: Table) -> Any:
        """Return an insert that supports `on_conflict_do_update` and `on_conflict_do_nothing`."""

    def prepare_insert(self, table: Table, statement: Any, driver: SqlDialect) -> InsertRows:
        """Return a function that executes an insert for many rows, all of which have every column of the table."""

    def loaded(self, engine: Engine) -> None:
        """Note that many rows were added, so that queries about them are planned well."""

    def explain(self, error: DBAPIError) -> StoreError:
        """Turn a database error into a readable message."""


@contextmanager
def translated(dialect: Dialect) -> Iterator[None]:
    """Turn database errors into readable messages; the only place where that happens."""
    try:
        yield
    except (OverflowError, UnicodeError) as error:
        raise bad_row(dialect, error) from error
    except DBAPIError as error:
        raise dialect.explain(error) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the store {dialect.place} cannot be used: {error}") from error


def damaged(dialect: Dialect, what: str) -> StoreError:
    """Return the error for a store whose rows are not as they were written."""
    return StoreError(
        f"the store {dialect.place} is damaged: `fairtrial store check --store {quote(dialect.place)}` shows how badly "
        f"and with --save FILE recovers the rows that are whole ({what})"
    )


def bad_row(dialect: Dialect, reason: BaseException) -> BadRowError:
    """Return the error for a row that the database cannot store."""
    if isinstance(reason, UnicodeEncodeError):  # as where an argument was typed in another encoding
        said = f"neither keep nor look up {reason.object[reason.start]!a}, which is not a character: write it in UTF-8"
        return BadRowError(f"the store {dialect.place} can {said}")
    return BadRowError(f"the store {dialect.place} cannot store this row: {reason}")
