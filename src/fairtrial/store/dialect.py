"""The interface between the store and a database. SQLite is the only one implemented today."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

from sqlalchemy import Engine, Table
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    SQLAlchemyError,
)

from fairtrial.core.errors import BadRowError, StoreError


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


class Dialect(Protocol):
    """One kind of database: how to open, lock and write it, and how to explain its errors."""

    name: str
    place: str  # the store's name in messages: a path, or an address without its password

    def open(self, *, create: bool) -> Engine:
        """Open the database; raise an error if it does not exist and `create` is false."""

    def lock(self, name: str) -> Lock:
        """Return the lock with this name, shared by all users of the store."""

    def insert(self, table: Table) -> Any:
        """Return an insert that supports `on_conflict_do_update` and `on_conflict_do_nothing`."""

    def explain(self, error: DBAPIError) -> StoreError:
        """Turn a database error into a readable message."""


@contextmanager
def translated(dialect: Dialect) -> Iterator[None]:
    """Turn database errors into readable messages; the only place where that happens."""
    try:
        yield
    except (DataError, IntegrityError, InterfaceError, ProgrammingError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "orig", None) or error
        raise BadRowError(f"the store {dialect.place} cannot store this row: {reason}") from error
    except DBAPIError as error:
        raise dialect.explain(error) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the store {dialect.place} cannot be used: {error}") from error
