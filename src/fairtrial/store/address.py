"""Resolve a store's address, a file name or a URL, to a database."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from fairtrial.core.errors import NotInstalledError, StoreError
from fairtrial.store.dialect import Dialect
from fairtrial.store.sqlite import Sqlite

_FORMS = "use sqlite:///path/to/file.db, a file name, or postgresql://USER@HOST/DATABASE"

# Servers of which one is the primary: `postgresql://USER@HOST:PORT,HOST:PORT/DATABASE?…`.
_SEVERAL = re.compile(r"(postgres\w*(?:\+\w+)?://(?:[^/?]*@)?)([\w.:-]+(?:,[\w.:-]+)+)/([^?]*)(?:\?(.*))?")
_HOSTS = "several.hosts"
_SECRETS = ("password", "sslpassword")  # options of a PostgreSQL URL


def as_url(store: str | None) -> str:
    """Return a store's URL; a plain path means a SQLite file."""
    store = store or default_store()
    return store if "://" in store else f"sqlite:///{store}"


def default_store(folder: str | Path = "") -> str:
    """Return the store where none is named: that of the environment, or else a file in the (current) folder."""
    return os.environ.get("FAIRTRIAL_STORE") or f"sqlite:///{Path(folder, '.fairtrial', 'fairtrial.db').as_posix()}"


def dialect_of(store: str | None) -> Dialect:
    """Return the database for a store's address."""
    url = _parsed(store)
    if url.get_backend_name() == "sqlite":
        return Sqlite(Path(url.database or ""))
    if url.get_backend_name() in ("postgresql", "postgres"):
        if find_spec("psycopg") is None:
            raise NotInstalledError("a store in PostgreSQL", "postgres")
        from fairtrial.store.postgresql import Postgresql  # psycopg: an extra

        return Postgresql(url, without_password(url))
    raise StoreError(f"runs are stored in SQLite or PostgreSQL; `{url.drivername}` is not supported: {_FORMS}")


def without_password(url: URL) -> str:
    """Return a URL as it may be shown."""
    query = {name: value for name, value in url.query.items() if name not in _SECRETS}
    if isinstance(hosts := query.get("host"), tuple):
        del query["host"]
        shown = URL.create("postgresql", url.username, None, _HOSTS, None, url.database, query).render_as_string()
        return shown.replace(_HOSTS, ",".join(hosts), 1)
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database, query).render_as_string()


def shown(store: str) -> str:
    """Return a store's address without its password."""
    return without_password(_parsed(store)) if "://" in store and not store.startswith("sqlite") else store


def _with_hosts(url: str) -> str:
    """Return a URL with several hosts as SQLAlchemy takes it; any other as it is."""
    found = _SEVERAL.fullmatch(url)
    if found is None:
        return url
    before, hosts, database, query = found.groups()
    named = "&".join(f"host={host}" for host in hosts.split(","))
    return f"{before}/{database}?{named}" + (f"&{query}" if query else "")


def _parsed(store: str | None) -> URL:
    url = as_url(store)
    try:
        return make_url(_with_hosts(url))
    except (ArgumentError, ValueError):  # the message must not show the address: it may have a password
        scheme = url.partition("://")[0]
        raise StoreError(f"the store's address `{scheme}://…` cannot be read: {_FORMS}") from None
