"""Group commits: many coroutines wait for their row to be durable, one thread writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Rows = dict[str, list[dict[str, Any]]]
_LINGER = 0.02  # seconds in which rows gather for one commit


class Saver:
    """Rows in, durable rows out. A row is taken the moment `save` is called: cancelling the wait loses nothing."""

    def __init__(self, write: Callable[[Rows], None]) -> None:
        self._write = write
        self._rows: Rows = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fairtrial-saver")
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Saver:
        self._task = asyncio.create_task(self._commit_forever())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._commit()
        finally:
            self._thread.shutdown(wait=True)
        if self._error is not None:
            raise self._error

    def save(self, table: str, row: dict[str, Any]) -> asyncio.Future[None]:
        """Take a row; the future is done when it is durable."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            future.set_exception(self._error)
            return future
        self._rows.setdefault(table, []).append(row)
        self._waiting.append(future)
        self._wake.set()
        return future

    async def _commit_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_LINGER)
            # Shielded, so that a commit under way is finished and its waiters are told, whoever stops the loop.
            await asyncio.shield(self._commit())

    async def _commit(self) -> None:
        async with self._one_at_a_time:
            await self._commit_rows()

    async def _commit_rows(self) -> None:
        self._wake.clear()
        rows, self._rows = self._rows, {}
        waiting, self._waiting = self._waiting, []
        if not rows:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write, rows)
        except Exception as error:  # whatever it was, nothing can be stored any more: everyone must know
            self._error = error
        for future in waiting:
            if future.done():
                continue
            if self._error is None:
                future.set_result(None)
            else:
                future.set_exception(self._error)
