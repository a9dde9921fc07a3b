"""SQLite: a store in one file, with locks in a folder beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Engine, Table, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from fairtrial.core.errors import StoreError, StoreLockedError

PATIENCE = 30  # seconds that a statement waits for another program


class Sqlite:
    """A store in a file."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)

    def open(self, *, create: bool) -> Engine:
        """An engine on the file."""
        path = self.path
        if path.is_dir():
            raise StoreError(f"{path} is a folder: name the store in it, such as {path}/.fairtrial/fairtrial.db")
        if not path.exists():
            if not create:
                raise StoreError(
                    f"there is no store at {path}; `fairtrial run SUITE` makes one, or name one with --store"
                )
            _create_file(path)
        engine = create_engine(URL.create("sqlite", database=str(path)))
        event.listen(engine, "connect", _configure)
        return engine

    def lock(self, name: str) -> FileLock:
        """A lock file in a folder beside the store."""
        folder = self.path.parent / "locks"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / f"{name}.lock").touch()
        except OSError:
            raise StoreError(f"{folder} cannot be written: check its permissions, or name another store") from None
        return FileLock(folder / f"{name}.lock", is_singleton=False)

    def insert(self, table: Table) -> Any:
        """SQLite's insert, which knows conflicts."""
        return insert(table)

    def explain(self, error: DBAPIError) -> StoreError:
        """What SQLite says, in a sentence for people."""
        reason = str(error.orig)
        kind = StoreLockedError if "locked" in reason.lower() else StoreError
        for words, sentence in _SENTENCES.items():
            if words in reason.lower():
                return kind(sentence.format(path=self.place, patience=PATIENCE))
        return kind(f"the store {self.place} cannot be used: {reason}")


def _create_file(path: Path) -> None:
    """An empty file for its owner alone; SQLite gives its other files the rights of this one."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the store's folder {folder} cannot be made: {error.strerror}") from None
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"the store {path} cannot be written: {error.strerror}; name another with --store") from None


def _configure(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")  # readers and the writer do not wait for each other
    cursor.execute("PRAGMA synchronous=FULL")  # a commit survives a power cut; group commits make it cheap
    cursor.execute(f"PRAGMA busy_timeout={1000 * PATIENCE}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


_SENTENCES = {
    "disk is full": "the disk with the store {path} is full: make room; what was stored is safe "
    "(`fairtrial resume latest`)",
    "disk i/o": "the disk with the store {path} cannot be read or written: see whether it is full, failing or gone; "
    "what was stored is safe (`fairtrial resume latest`)",
    "not a database": "{path} is not a fairtrial store: name another with --store",
    "malformed": "the store {path} is damaged: `fairtrial store check --store {path}` says how far, and with "
    "--save FILE saves what is whole",
    "readonly": "the store {path} cannot be written: check its permissions, or name another with --store",
    "unable to open": "the store {path} cannot be opened: check its permissions, or name another with --store",
    "locked": "the store {path} is locked by another program for more than {patience} s: end that one, then try again",
}
