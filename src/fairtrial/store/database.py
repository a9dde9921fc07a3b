"""Opening a store: the engine, its settings, and foreign errors turned into sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    SQLAlchemyError,
)

from fairtrial.core.errors import BadRowError, StoreError, StoreLockedError
from fairtrial.store.migrations import is_current, migrate

PATIENCE = 30  # seconds that a statement waits for another program
DEFAULT_URL = "sqlite:///.fairtrial/fairtrial.db"


def as_url(store: str | None) -> str:
    """A store URL; a plain path means a SQLite file."""
    if not store:
        return DEFAULT_URL
    return store if "://" in store else f"sqlite:///{store}"


def open_engine(store: str | None, *, create: bool) -> Engine:
    """An engine on an up-to-date store; with `create` false, a store that does not exist is an error."""
    path = sqlite_path(store)
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name the store in it, such as {path}/.fairtrial/fairtrial.db")
    if not path.exists():
        if not create:
            raise StoreError(f"there is no store at {path}; `fairtrial run SUITE` makes one, or name one with --store")
        _make_place(path)
    with translated(path):
        engine = create_engine(URL.create("sqlite", database=str(path)))
        event.listen(engine, "connect", _configure)
        with engine.connect() as connection:
            current = is_current(connection)
        if not current:  # one process brings it up to date, the others wait
            with lock_beside(str(path), "schema"), engine.begin() as connection:
                migrate(connection)
    return engine


def sqlite_path(store: str | None) -> Path:
    """The file that a store is in."""
    url = as_url(store)
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError(f"`{url}` is no store: use sqlite:///path/to/file.db or a file name") from None
    if parsed.get_backend_name() != "sqlite":
        raise StoreError(f"this version keeps runs in SQLite only; `{parsed.drivername}` is not supported")
    return Path(parsed.database or "")


def _make_place(path: Path) -> None:
    """An empty store for its owner alone; SQLite gives its other files the rights of this one."""
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


def lock_beside(path: str, name: str) -> FileLock:
    """A lock between processes that goes with its process, in a folder beside the store."""
    folder = Path(path).parent / "locks"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / f"{name}.lock").touch()
    except OSError:
        raise StoreError(f"{folder} cannot be written: check its permissions, or name another store") from None
    return FileLock(folder / f"{name}.lock", is_singleton=False)


@contextmanager
def translated(path: Path | str) -> Iterator[None]:
    """The one seam where database errors become sentences."""
    try:
        yield
    except (DataError, IntegrityError, InterfaceError, ProgrammingError, OverflowError, UnicodeError) as error:
        raise BadRowError(f"the store {path} cannot hold this: {getattr(error, 'orig', None) or error}") from error
    except DBAPIError as error:
        reason = str(error.orig)
        kind = StoreLockedError if "locked" in reason.lower() else StoreError
        raise kind(_sentence(path, reason)) from error
    except SQLAlchemyError as error:
        raise StoreError(f"the store {path} cannot be used: {error}") from error


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


def _sentence(path: Path | str, reason: str) -> str:
    """What SQLite says, in a sentence for people."""
    for words, sentence in _SENTENCES.items():
        if words in reason.lower():
            return sentence.format(path=path, patience=PATIENCE)
    return f"the store {path} cannot be used: {reason}"
