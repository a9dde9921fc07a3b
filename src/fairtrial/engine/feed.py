"""The cases of a plan while they are being stored: a run asks none before it has all, since their order is random."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import closing
from contextvars import copy_context
from types import TracebackType

from fairtrial.core.calling import call_in_thread
from fairtrial.store.planned import Planned
from fairtrial.store.waiting import Waiting


class CaseFeed:
    """Has the cases of a plan written in a thread, and tells how many are stored."""

    def __init__(
        self,
        batches: Generator[Planned, None, None] | None = None,
        planned: Planned | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        """`batches` writes the cases as it is iterated over, and yields those that are stored; without it all are.

        `waiting` is how long the store is waited for, in `batches` and in the whole session.
        """
        self.waiting = waiting or Waiting()
        self.planned, self.complete = planned or Planned(), batches is None
        self._batches = batches
        self._problem: BaseException | None = None
        self._changed = asyncio.Event()
        self._closing = False
        self._thread: asyncio.Future[None] | None = None

    async def __aenter__(self) -> CaseFeed:
        if self._batches is not None:
            loop = asyncio.get_running_loop()
            writing = call_in_thread(copy_context().run, self._write, loop, self._batches)
            self._thread = asyncio.ensure_future(writing)
            self._thread.add_done_callback(self._ended)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True  # what is not stored yet is stored when the run continues
        if kind is not None:
            self.waiting.hurry()
        if self._thread is not None:
            await self.waiting.ended(self._thread)
            self._thread.cancel()  # which leaves a thread that hangs to itself

    async def wait_for(self, count: int) -> int:
        """Wait until this many cases are stored, or all there are; return how many are.

        Raises FairtrialError if the next cases cannot be read.
        """
        while self.planned.cases < count and not self.complete:
            if self._problem is not None:
                raise self._problem
            self._changed.clear()
            await self._changed.wait()
        return self.planned.cases

    def _write(self, loop: asyncio.AbstractEventLoop, batches: Generator[Planned, None, None]) -> None:
        with closing(batches):
            for planned in batches:
                loop.call_soon_threadsafe(self._tell, planned)
                if self._closing:
                    return
        loop.call_soon_threadsafe(self._end)

    def _ended(self, thread: asyncio.Future[None]) -> None:
        """Have what ended the thread, or kept it from starting, raised where the cases are waited for."""
        if not thread.cancelled() and (error := thread.exception()) is not None:
            self._problem = error
            self._changed.set()

    def _tell(self, planned: Planned) -> None:
        self.planned = planned
        self._changed.set()

    def _end(self) -> None:
        self.complete = True
        self._changed.set()
