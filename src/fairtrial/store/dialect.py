"""The seam between the store and a database: what differs from one to the next. SQLite is the one there is today."""

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
    """A lock between processes that goes with its process, however that ends. A context manager."""

    def acquire(self, *, timeout: float, poll_interval: float = 0.05) -> Any:
        """Take it within so many seconds, or raise `filelock.Timeout`."""

    def __enter__(self) -> Any:
        """Take it, however long that takes."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Let go of it."""


class Dialect(Protocol):
    """One kind of database: how it is opened, locked and written to, and what its errors mean to people."""

    name: str
    place: str  # what people call this store: a path, or an address without its password

    def open(self, *, create: bool) -> Engine:
        """An engine on the database; where there is none and `create` is false, an error says so."""

    def lock(self, name: str) -> Lock:
        """The lock of that name, shared by everybody who uses this store."""

    def insert(self, table: Table) -> Any:
        """An insert that knows `on_conflict_do_update` and `on_conflict_do_nothing`."""

    def explain(self, error: DBAPIError) -> StoreError:
        """A sentence for people about what the database said."""


@contextmanager
def translated(dialect: Dialect) -> Iterator[None]:
    """The one place where database errors become sentences."""
    try:
        yield
    except (DataError, IntegrityError, InterfaceError, ProgrammingError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "orig", None) or error
        raise BadRowError(f"the store {dialect.place} cannot hold this: {reason}") from error
    except DBAPIError as error:
        raise dialect.explain(error) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the store {dialect.place} cannot be used: {error}") from error
