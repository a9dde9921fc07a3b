"""Group commits: many coroutines wait until their row is durable, and one thread at a time writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairtrial.core.errors import BadRowError, RunLostError
from fairtrial.core.money import Cost
from fairtrial.store.lease import Paid
from fairtrial.store.statements import Rows
from fairtrial.store.waiting import Waiting

KeepLate = Callable[[Sequence[Paid]], None]
# Seconds during which rows are gathered for one commit, in addition to the duration of the previous commit. Rows that
# arrive in this time are lost in a crash and paid for again: design note 0011 shows the effect of other values.
_GATHER_SECONDS = 0.005


class _Entry(NamedTuple):
    table: str
    row: dict[str, Any]
    future: asyncio.Future[None]
    then: Callable[[], None] | None
    cost: Cost | None


class Saver:
    """Makes rows durable. A row is accepted as soon as `save` is called: cancelling the wait does not lose it."""

    def __init__(
        self,
        write: Callable[[Rows], None],
        waiting: Waiting | None = None,
        keep_late: KeepLate = lambda _: None,
    ) -> None:
        """`waiting` is how long a store that cannot be written for now is waited for.

        Once `write` has raised RunLostError, what was paid for is given to `keep_late`, and every wait raises it.
        """
        self._write, self._keep_late, self._waiting = write, keep_late, waiting or Waiting()
        self._lost: RunLostError | None = None
        self._entries: list[_Entry] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Saver:
        self._task = asyncio.create_task(self._commit_forever())
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        assert self._task is not None
        if kind is not None:
            self._waiting.hurry()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.flush()
        error = self._error or self._lost
        if error is not None:
            raise error

    def save(
        self, table: str, row: dict[str, Any], then: Callable[[], None] | None = None, paid: Cost | None = None
    ) -> asyncio.Future[None]:
        """Accept a row; once it is durable, the future is done and `then` is called, even if nothing waits any more.

        `paid` says that the row was paid for, and what of that is in no other row. The future raises BadRowError for a
        row that can never be stored.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            _fail(future, self._error)
            return future
        self._entries.append(_Entry(table, row, future, then, paid))
        self._wake.set()
        return future

    async def flush(self) -> None:
        """Make all rows accepted so far durable."""
        async with self._one_at_a_time:
            await self._commit()

    async def _commit_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            # Shielded, so that stopping the loop lets a running commit finish and notify its waiters.
            await asyncio.shield(self.flush())

    async def _commit(self) -> None:
        self._wake.clear()
        entries, self._entries = self._entries, []
        if not entries:
            return
        try:
            errors = await self._waiting.in_thread(self._write_all, entries)
        except Exception as error:  # nothing can be stored any more, so all waiters must know
            self._error = error
            errors = [error] * len(entries)
        for entry, failure in zip(entries, errors, strict=True):
            if entry.then is not None and (failure is None or failure is self._lost):  # it is durable, if late
                entry.then()
            if entry.future.done():
                continue
            if failure is None:
                entry.future.set_result(None)
            else:
                _fail(entry.future, failure)

    def _write_all(self, entries: Sequence[_Entry]) -> Sequence[BaseException | None]:
        """Write the rows in one transaction, or one by one if any of them can never be stored."""
        if self._lost is None:
            try:
                self._waiting.call(self._write, _by_table(entries))  # paid answers must not be lost
            except BadRowError as error:
                if len(entries) == 1:
                    return [error]
                return [failure for entry in entries for failure in self._write_all([entry])]
            except RunLostError as error:
                self._lost = error
            else:
                return [None] * len(entries)
        late = [Paid(entry.table, entry.row, entry.cost) for entry in entries if entry.cost is not None]
        self._waiting.call(self._keep_late, late)
        return [self._lost] * len(entries)


def _by_table(entries: Sequence[_Entry]) -> Rows:
    rows: Rows = {}
    for entry in entries:
        rows.setdefault(entry.table, []).append(entry.row)
    return rows


def _fail(future: asyncio.Future[None], error: BaseException) -> None:
    """Raise an error where a row is waited for; if nothing waits, the saver reports a failed store when it ends."""
    future.set_exception(error)
    future.exception()  # otherwise asyncio complains about what nobody has retrieved
