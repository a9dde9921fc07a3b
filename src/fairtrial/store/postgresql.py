"""PostgreSQL: a store on a server, for several machines at once."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import psycopg
from psycopg.adapt import Buffer, Loader
from sqlalchemy import Connection, Engine, NullPool, Table, create_engine, event, text
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.advisory import AdvisoryLock
from fairtrial.store.dialect import InsertRows, translated
from fairtrial.store.postgresql_errors import explain
from fairtrial.store.postgresql_rows import prepare_insert
from fairtrial.store.waiting import PAUSE, Waiting

OLDEST = 13  # the first version that can tell whether a transaction was committed
# A connection that leads nowhere, as after a firewall has dropped it, is noticed after about a minute.
_CONNECTION = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "client_encoding": "utf8",
}
_SETTINGS = """\
SELECT set_config('search_path', %s, false),
       set_config('cursor_tuple_fraction', '1', false),  -- results are read to their end
       set_config('jit', 'off', false),  -- compiling takes longer than our queries gain from it
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END  -- a commit survives a power cut
"""


class _WholeNumber(Loader):
    """Read sums of integers, which PostgreSQL returns as decimals, as integers."""

    def load(self, data: Buffer) -> int | float:
        digits = bytes(data).decode()
        return int(digits) if digits.lstrip("-").isdigit() else float(digits)


class Postgresql:
    """A store in a schema of a PostgreSQL database."""

    name = "postgresql"

    def __init__(self, url: URL, place: str) -> None:
        self.place = place
        self.address = url.render_as_string(hide_password=False)
        self.schema = str(url.query.get("schema") or "public")
        self._url = url.set(drivername="postgresql+psycopg").difference_update_query(["schema"])
        self._sessions = self._engine(poolclass=NullPool)  # one connection for every lock
        self._pool = self._sessions
        self._held: WeakValueDictionary[str, AdvisoryLock] = WeakValueDictionary()

    def _engine(self, **options: Any) -> Engine:
        name = f"fairtrial on {socket.gethostname()}, process {os.getpid()}"
        settings = {**_CONNECTION, "application_name": name[:63]}
        arguments = {key: value for key, value in settings.items() if key not in self._url.query}
        engine = create_engine(self._url, connect_args=arguments, **options)
        event.listen(engine, "connect", self._configure)
        return engine

    def _configure(self, connection: psycopg.Connection[Any], _: Any) -> None:
        connection.adapters.register_loader("numeric", _WholeNumber)
        path = psycopg.sql.Identifier(self.schema).as_string(connection)
        connection.execute(_SETTINGS, (path,))
        connection.commit()

    def open(self, *, create: bool) -> Engine:
        """Connect to the database; create the schema if it is missing."""
        engine = self._engine(pool_pre_ping=True, pool_size=5, max_overflow=20)
        try:
            with translated(self), engine.begin() as connection:
                self._check_server(connection)
                exists = connection.scalar(
                    text("SELECT 1 FROM pg_tables WHERE schemaname = :schema AND tablename = 'meta'"),
                    {"schema": self.schema},
                )
                if not exists and not create:
                    raise StoreError(
                        f"there is no store at {self.place}; `fairtrial run SUITE` creates one, or choose another with "
                        "--store"
                    )
                if not exists and self.schema != "public":
                    quoted = engine.dialect.identifier_preparer.quote_identifier(self.schema)
                    self.serialise(connection, "schema")
                    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {quoted}")
        except BaseException:
            engine.dispose()
            raise
        self._pool = engine
        return engine

    def _check_server(self, connection: Connection) -> None:
        settings = "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding')"
        version, encoding = connection.exec_driver_sql(settings).one()
        if version < OLDEST:
            raise StoreError(f"{self.place} is PostgreSQL {version}: a store needs version {OLDEST} or later")
        if encoding != "UTF8":
            raise StoreError(
                f"the database {self.place} has the encoding {encoding}: create one with `createdb --encoding UTF8`"
            )

    # -- locks -----------------------------------------------------------------------------------

    def key(self, name: str) -> int:
        """Return the number of the advisory lock with this name."""
        digest = hashlib.blake2b(f"{self.schema}/{name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)

    def lock(self, name: str) -> AdvisoryLock:
        """Return an advisory lock, which is released when its connection ends."""
        return AdvisoryLock(self, self._sessions, self._held, name, self.key(name))

    def is_locked(self, name: str) -> bool:
        """Look the lock up among those that are held."""
        query = text(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
            "(classid::bigint << 32) | objid::bigint = :key"
        )
        with translated(self), self._pool.connect() as connection:
            return bool(connection.scalar(query, {"key": self.key(name)}))

    def keep_locks(self, names: Iterable[str]) -> None:
        """Acquire locks again whose connection was lost, as when the server was restarted."""
        for name in names:
            if name in self._held:
                self._held[name].keep()

    # -- transactions ----------------------------------------------------------------------------

    @contextmanager
    def transaction(self, engine: Engine) -> Iterator[Connection]:
        """Open a transaction; if the connection is lost while it is committed, find out whether it was."""
        with engine.connect() as connection, connection.begin() as transaction:
            number = connection.exec_driver_sql("SELECT pg_current_xact_id()::text").scalar_one()
            yield connection
            try:
                transaction.commit()
            except DBAPIError as error:
                if not error.connection_invalidated or not self._was_committed(engine, number):
                    raise

    def _was_committed(self, engine: Engine, number: str) -> bool:
        """Ask the server, once it responds again, how a transaction ended."""
        query = text("SELECT pg_xact_status(CAST(:number AS xid8))")

        def status() -> str | None:
            with translated(self), engine.connect() as connection:
                found: str | None = connection.scalar(query, {"number": number})
                return found

        waiting = Waiting()
        while (known := waiting.call(status)) == "in progress":
            time.sleep(PAUSE)
        return known == "committed"

    def serialise(self, connection: Connection, name: str, *, shared: bool = False) -> None:
        """Acquire an advisory lock until the end of the transaction."""
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        connection.execute(text(f"SELECT {function}(:key)"), {"key": self.key(f"transaction {name}")})

    # -- rows and errors -------------------------------------------------------------------------

    def insert(self, table: Table) -> Any:
        """Return PostgreSQL's insert, which supports conflict clauses."""
        return insert(table)

    def prepare_insert(self, table: Table, statement: Any, driver: SqlDialect) -> InsertRows:
        """Return a function that sends many rows in one statement."""
        return prepare_insert(table, statement, driver)

    def loaded(self, engine: Engine) -> None:
        """Have the planner's statistics renewed now; otherwise the server does so within a minute or so."""
        with translated(self), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in schema.metadata.tables:
                connection.exec_driver_sql(f"ANALYZE {table}")

    def explain(self, error: DBAPIError) -> StoreError:
        """Turn a PostgreSQL error into a readable message."""
        return explain(self, error, self._url)
