"""Resolve a store's address, a file name or a URL, to a database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from fairtrial.core.errors import StoreError
from fairtrial.store.dialect import Dialect
from fairtrial.store.sqlite import Sqlite

DEFAULT_URL = "sqlite:///.fairtrial/fairtrial.db"


def as_url(store: str | None) -> str:
    """Return a store's URL; a plain path means a SQLite file."""
    if not store:
        return DEFAULT_URL
    return store if "://" in store else f"sqlite:///{store}"


def dialect_of(store: str | None) -> Dialect:
    """Return the database for a store's address."""
    return Sqlite(sqlite_path(store))


def sqlite_path(store: str | None) -> Path:
    """Return the file of a SQLite store."""
    url = as_url(store)
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError(f"`{url}` is not a store: use sqlite:///path/to/file.db or a file name") from None
    if parsed.get_backend_name() != "sqlite":
        raise StoreError(f"this version stores runs in SQLite only; `{parsed.drivername}` is not supported")
    return Path(parsed.database or "")
