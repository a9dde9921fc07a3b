"""Group commits: many coroutines wait for their row to be durable, one thread writes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from fairtrial.core.errors import BadRowError, StoreLockedError

Rows = dict[str, list[dict[str, Any]]]
# Seconds in which rows gather for one commit, beside the time that the commit before takes. What has arrived in them
# is lost in a crash, and bought again: design note 0011 has what shorter and longer ones cost.
_LINGER = 0.002
_LONGEST_LOCK = 600.0  # seconds after which a lock of another program ends the session


class _Entry(NamedTuple):
    table: str
    row: dict[str, Any]
    future: asyncio.Future[None]
    then: Callable[[], None] | None


class Saver:
    """Rows in, durable rows out. A row is taken the moment `save` is called: cancelling the wait loses nothing."""

    def __init__(self, write: Callable[[Rows], None], locked: Callable[[bool], None] = lambda _: None) -> None:
        """`locked` hears when another program holds the store, and when it has let go of it; from a thread."""
        self._write, self._locked = write, locked
        self._entries: list[_Entry] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-saver")
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._one_at_a_time = asyncio.Lock()
        self._closing = False

    async def __aenter__(self) -> Saver:
        self._task = asyncio.create_task(self._commit_forever())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._closing = True  # whoever pressed Ctrl-C is not kept waiting for a lock
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self.flush()
        finally:
            self._thread.shutdown(wait=True)
        if self._error is not None:
            raise self._error

    def save(self, table: str, row: dict[str, Any], then: Callable[[], None] | None = None) -> asyncio.Future[None]:
        """Take a row; the future is done when it is durable, and `then` is called, whoever still waits.

        A row that cannot be stored whatever is done raises BadRowError.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_look_at)
        if self._error is not None:
            future.set_exception(self._error)
            return future
        self._entries.append(_Entry(table, row, future, then))
        self._wake.set()
        return future

    async def flush(self) -> None:
        """Make durable what was taken so far."""
        async with self._one_at_a_time:
            await self._commit()

    async def _commit_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_LINGER)
            # Shielded, so that a commit under way is finished and its waiters are told, whoever stops the loop.
            await asyncio.shield(self.flush())

    async def _commit(self) -> None:
        self._wake.clear()
        entries, self._entries = self._entries, []
        if not entries:
            return
        try:
            errors = await asyncio.get_running_loop().run_in_executor(self._thread, self._write_all, entries)
        except Exception as error:  # whatever it was, nothing can be stored any more: everyone must know
            self._error = error
            errors = [error] * len(entries)
        for entry, failure in zip(entries, errors, strict=True):
            if failure is None and entry.then is not None:
                entry.then()
            if entry.future.done():
                continue
            if failure is None:
                entry.future.set_result(None)
            else:
                entry.future.set_exception(failure)

    def _write_all(self, entries: Sequence[_Entry]) -> Sequence[BaseException | None]:
        """Write them in one transaction, or one by one where one of them is such that no database takes it."""
        try:
            self._patiently(_by_table(entries))
        except BadRowError:
            return [self._write_one(entry) for entry in entries]
        return [None] * len(entries)

    def _write_one(self, entry: _Entry) -> BadRowError | None:
        try:
            self._patiently({entry.table: [entry.row]})
        except BadRowError as error:
            return error
        return None

    def _patiently(self, rows: Rows) -> None:
        """Write; while another program holds the store, wait, and say so: answers that were paid for are at stake."""
        waited_until = time.monotonic() + _LONGEST_LOCK
        while True:
            try:
                self._write(rows)
            except StoreLockedError:
                if time.monotonic() > waited_until or self._closing:
                    raise
                self._locked(True)
            else:
                self._locked(False)
                return


def _by_table(entries: Sequence[_Entry]) -> Rows:
    rows: Rows = {}
    for entry in entries:
        rows.setdefault(entry.table, []).append(entry.row)
    return rows


def _look_at(future: asyncio.Future[None]) -> None:
    """Not everybody waits for every row; that the store failed is said once, when the saver ends."""
    if not future.cancelled():
        future.exception()
