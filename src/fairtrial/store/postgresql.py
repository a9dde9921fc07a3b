"""PostgreSQL: a store on a server, for several machines at once."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from sqlalchemy import Connection, Engine, NullPool, Table, create_engine, event, text
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from fairtrial.core.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from fairtrial.core.secrets import SHORTEST
from fairtrial.store import schema
from fairtrial.store.advisory import AdvisoryLock
from fairtrial.store.dialect import InsertRows, Lock, Mark, bad_row, translated
from fairtrial.store.waiting import PAUSE, current

OLDEST = 13  # the first version that can tell whether a transaction was committed
# A connection that leads nowhere, as after a firewall has dropped it, is noticed after about a minute.
_CONNECTION = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # what was sent and is not acknowledged, which keepalives do not look at
    "client_encoding": "utf8",
}
_SETTINGS = """\
SELECT set_config('search_path', %s, false),
       set_config('cursor_tuple_fraction', '1', false),  -- results are read to their end
       set_config('jit', 'off', false),  -- compiling takes longer than our queries gain from it
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END  -- a commit survives a power cut
"""

# A server that takes the place of another begins a new time line of the same system.
_IDENTITY = """\
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE
       system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system()
"""
_SERVER, _NUMBER = "fairtrial.server", "fairtrial.transaction"  # what is noted of a connection

_MANY = 50  # rows from which COPY is quicker
_LOCKED = ("55P03", "40P01", "40001")  # lock not available, deadlock, serialisation failure
_UNREACHABLE = ("08", "57P01", "57P02", "57P03", "53300")  # connection, shutdown, starting up, too many connections
_READ_ONLY = "25006"
_BUSY: dict[str, tuple[type[StoreBusyError], str]] = {
    "53100": (StoreFullError, "the disk of the database {place} is full: free some space"),
    _READ_ONLY: (StoreReadOnlyError, "the database {place} is read-only: give the address of the primary server"),
}
_BY_STATE = {
    "42501": "the user of {place} may not do this ({reason}): grant it the right to create and write tables there",
    "42P01": "the tables of {place} are gone ({reason}): has the store been deleted?",
    "28": "{place} does not accept this user or password: check the address, PGPASSWORD or ~/.pgpass",
}
_BY_WORDS = {  # a connection that is refused has no code
    "password authentication failed": _BY_STATE["28"],
    "no password supplied": "{place} needs a password: give it in the address, in PGPASSWORD or in ~/.pgpass",
    'FATAL:  database "': "there is no database `{database}` at {place}: create it with `createdb {database}`",
    'FATAL:  role "': "there is no user `{user}` at {place}: create it with `createuser`, or check the address",
}


class _WholeNumber(Loader):
    """Read sums of integers, which PostgreSQL returns as decimals, as integers."""

    def load(self, data: Buffer) -> int | float:
        digits = bytes(data).decode()
        return int(digits) if digits.lstrip("-").isdigit() else float(digits)


class Postgresql:
    """A store in a schema of a PostgreSQL database."""

    name = "postgresql"
    reads_all = True

    def __init__(self, url: URL, place: str) -> None:
        self.place = place
        self.address = url.render_as_string(hide_password=False)
        self.schema = str(url.query.get("schema") or "public")
        self._url = url.set(drivername="postgresql+psycopg").difference_update_query(["schema"])
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what follows from an error that it raises
        self._server = ""  # the last one that was reached, unless it only reads
        self._sessions = self._engine(poolclass=NullPool)  # one connection for every lock
        self._pool = self._sessions

    def _engine(self, **options: Any) -> Engine:
        name = f"fairtrial on {socket.gethostname()}, process {os.getpid()}"
        settings = {**_CONNECTION, "application_name": name[:63]}
        arguments = {key: value for key, value in settings.items() if key not in self._url.query}
        engine = create_engine(self._url, connect_args=arguments, **options)
        event.listen(engine, "connect", self._configure)
        event.listen(engine, "checkout", self._is_current)
        return engine

    def _configure(self, connection: psycopg.Connection[Any], record: Any) -> None:
        connection.adapters.register_loader("numeric", _WholeNumber)
        path = psycopg.sql.Identifier(self.schema).as_string(connection)
        connection.execute(_SETTINGS, (path,))
        connection.commit()
        record.info[_SERVER] = self._identify(connection)

    def _identify(self, connection: psycopg.Connection[Any]) -> str:
        """Return which server this is; refuse one whose place another has taken."""
        try:
            (server,) = connection.execute(_IDENTITY).fetchone() or ("",)
        except psycopg.Error:  # not every service that speaks PostgreSQL's protocol has these functions
            server = ""
        connection.rollback()
        if server and server.partition("/")[0] == self._server.partition("/")[0] and server < self._server:
            raise psycopg.OperationalError("another server has taken the place of this one")
        self._server = server or self._server
        return str(server)

    def _is_current(self, _: Any, record: Any, __: Any) -> None:
        """Have a connection replaced that leads to a server whose place another has taken."""
        server = record.info[_SERVER]
        if server and server != self._server:
            raise DisconnectionError

    def mark(self, connection: Connection) -> Mark:
        return Mark(connection.info[_SERVER], connection.info[_NUMBER])

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
        return AdvisoryLock(self, self._sessions, name, self.key(name))

    def is_locked(self, name: str) -> bool:
        """Look the lock up among those that are held."""
        query = text(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND "
            "database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
            "(classid::bigint << 32) | objid::bigint = :key"
        )
        with translated(self), self._pool.connect() as connection:
            return bool(connection.scalar(query, {"key": self.key(name)}))

    def keep_lock(self, lock: Lock) -> None:
        """Acquire a lock again whose connection was lost, as when the server was restarted."""
        assert isinstance(lock, AdvisoryLock)
        lock.keep()

    # -- transactions ----------------------------------------------------------------------------

    @contextmanager
    def transaction(self, engine: Engine) -> Iterator[Connection]:
        """Open a transaction; if the connection is lost while it is committed, find out whether it was."""
        with engine.connect() as connection, _left_if_read_only(connection), connection.begin() as transaction:
            number = connection.exec_driver_sql("SELECT pg_current_xact_id()::text").scalar_one()
            connection.info[_NUMBER] = int(number)
            yield connection
            try:
                transaction.commit()
            except DBAPIError as error:
                if not error.connection_invalidated or not self._was_committed(engine, number):
                    raise

    def _was_committed(self, engine: Engine, number: str) -> bool:
        """Ask the server, once it responds again, how a transaction ended.

        One that has taken the place of another may not have come so far yet.
        """
        query = text(
            "SELECT CASE WHEN CAST(:number AS xid8) < pg_snapshot_xmax(pg_current_snapshot()) "
            "THEN pg_xact_status(CAST(:number AS xid8)) END"
        )

        def status() -> str | None:
            with translated(self), engine.connect() as connection:
                found: str | None = connection.scalar(query, {"number": number})
                return found

        waiting = current()
        while (known := waiting.call(status)) == "in progress":
            time.sleep(PAUSE)
        return known == "committed"

    def serialise(self, connection: Connection, name: str, *, shared: bool = False) -> None:
        """Acquire an advisory lock until the end of the transaction."""
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        connection.execute(text(f"SELECT {function}(:key)"), {"key": self.key(f"transaction {name}")})

    # -- rows and errors -------------------------------------------------------------------------

    def insert(self, table: Table) -> Any:
        return insert(table)

    def prepare_insert(self, table: Table, statement: Any, driver: SqlDialect) -> InsertRows:
        """Return a function that inserts rows: by prepared statements if they are few, by COPY if they are many.

        COPY takes a third to a half of the time of single inserts, on both sides (design note 0020), but has to go
        through a temporary table where a row may take the place of another.
        """
        columns = list(table.c)
        names = ", ".join(driver.identifier_preparer.quote(column.name) for column in columns)
        convert = [(column.name, column.type.dialect_impl(driver).bind_processor(driver)) for column in columns]
        key = itemgetter(*(column.name for column in table.primary_key))
        _, conflict, action = str(statement.compile(dialect=driver)).partition(" ON CONFLICT ")
        into = f"INSERT INTO {table.name} ({names})"
        one_by_one = f"{into} VALUES ({', '.join(['%s'] * len(columns))}){conflict}{action}"
        staged = f"staged_{table.name}"
        from_staged = f"{into} SELECT {names} FROM {staged}{conflict}{action}"  # noqa: S608

        def insert_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
            values = [
                tuple(row[name] if process is None else process(row[name]) for name, process in convert) for row in rows
            ]
            # One statement may not change a row twice.
            if len(rows) < _MANY or len({key(row) for row in rows}) < len(rows):
                connection.exec_driver_sql(one_by_one, values)
            elif not conflict:
                _copy(connection, f"COPY {table.name} ({names}) FROM STDIN", values)
            else:
                connection.exec_driver_sql(
                    f"CREATE TEMPORARY TABLE IF NOT EXISTS {staged} (LIKE {table.name}) ON COMMIT DELETE ROWS"
                )
                _copy(connection, f"COPY {staged} ({names}) FROM STDIN", values)
                connection.exec_driver_sql(from_staged)

        return insert_rows

    def loaded(self, engine: Engine) -> None:
        """Have the planner's statistics renewed now; otherwise the server does so within a minute or so."""
        with translated(self), engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in schema.metadata.tables:
                connection.exec_driver_sql(f"ANALYZE {table}")

    def explain(self, error: DBAPIError) -> StoreError:
        state = getattr(error.orig, "sqlstate", None) or ""
        words = str(error.orig)
        reason = _short(words, self._url)
        names = {"place": self.place, "reason": reason, "database": self._url.database, "user": self._url.username}
        if state in _BUSY:
            kind, message = _BUSY[state]
            return kind(message.format(**names))
        for sign, message in (_BY_STATE if state else _BY_WORDS).items():
            if state.startswith(sign) if state else sign in words:
                return StoreError(message.format(**names))
        if state in _LOCKED:
            return StoreLockedError(f"the store {self.place} is locked by another program ({reason}): try again")
        if _is_unreachable(error, state):
            return StoreUnreachableError(
                f"the database {self.place} cannot be reached ({reason}): check that the server is running and accepts "
                "connections"
            )
        if isinstance(error, DataError | IntegrityError | ProgrammingError):
            return bad_row(self, error.orig or error)
        return StoreError(f"the store {self.place} cannot be used: {reason}")


@contextmanager
def _left_if_read_only(connection: Connection) -> Iterator[None]:
    """Have the next transaction connect anew if the server takes no changes: another one may by now."""
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == _READ_ONLY:
            connection.invalidate()
        raise


def _copy(connection: Connection, statement: str, values: list[tuple[Any, ...]]) -> None:
    """Send rows as a stream; errors are reported as those of other statements."""
    driver: Any = connection.connection.dbapi_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as stream:
            for row in values:
                stream.write_row(row)
    except psycopg.Error as error:
        lost = bool(driver.closed)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(statement, None, error, psycopg.Error, connection_invalidated=lost) from error


def _is_unreachable(error: DBAPIError, state: str) -> bool:
    if error.connection_invalidated or state.startswith(_UNREACHABLE):
        return True
    words = str(error.orig)
    broken = isinstance(error, OperationalError | InterfaceError) and not state
    return broken and any(sign in words for sign in ("connect", "closed", "server", "timeout", "SSL"))


def _short(words: str, url: URL) -> str:
    """Return the reason on one line, without libpq's advice and without the password."""
    line = " ".join(words.split()).rpartition(" failed: ")[2].partition(" Is the server running")[0]
    password = str(url.password or "")
    return line.replace(password, "***") if len(password) >= SHORTEST else line
