"""Locks between processes on any machine: advisory locks of PostgreSQL, which end with their connection."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from types import TracebackType

from filelock import Timeout
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from fairtrial.store.dialect import Dialect, translated


class AdvisoryLock:
    """A lock on a connection of its own."""

    def __init__(self, dialect: Dialect, sessions: Engine, name: str, key: int) -> None:
        self._dialect, self._sessions = dialect, sessions
        self._name, self._key = name, key
        self._connection: Connection | None = None

    def acquire(self, *, timeout: float, poll_interval: float = 0.05) -> AdvisoryLock:
        with translated(self._dialect):
            connection = self._sessions.connect().execution_options(isolation_level="AUTOCOMMIT")
            try:
                self._wait(connection, timeout, poll_interval)
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        return self

    def _wait(self, connection: Connection, timeout: float, poll_interval: float) -> None:
        deadline = time.monotonic() + timeout
        attempt = text("SELECT pg_try_advisory_lock(:key)")
        while not connection.scalar(attempt, {"key": self._key}):
            if time.monotonic() >= deadline:
                raise Timeout(self._name)
            time.sleep(poll_interval)

    def keep(self) -> None:
        """Acquire the lock again if its connection was lost, unless another process has it now.

        It only keeps others from beginning; whose run it is, the run's epoch says.
        """
        if self._connection is not None:
            try:
                self._connection.exec_driver_sql("SELECT 1")
            except DBAPIError:
                self.release()
            else:
                return
        with suppress(Timeout):
            self.acquire(timeout=0)

    def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()  # which ends the session, and with it the lock; a reply would be waited for
            connection.close()

    def __enter__(self) -> AdvisoryLock:
        return self if self._connection is not None else self.acquire(timeout=math.inf)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()
