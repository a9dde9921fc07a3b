"""Wait, for a limited time, for a database that cannot be reached or is locked."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Event
from typing import Any, ParamSpec, TypeVar

from fairtrial.core.calling import call_in_thread
from fairtrial.core.errors import StoreBusyError, StoreUnreachableError

P = ParamSpec("P")
T = TypeVar("T")
LONGEST = 600.0  # seconds that a run waits for its store
GRACE = 5.0  # seconds that it waits after Ctrl-C
PAUSE = 0.2  # seconds between two attempts
_SLOW = 3.0  # seconds without a reply that are worth saying
_REPLY = 60.0  # seconds that one attempt may take
_LAST = 1.0  # seconds for what is tried once more when all others are over


class _Call:
    """A call of a function of the store that has not ended."""

    def __init__(self) -> None:
        self.since, self.reason = time.monotonic(), ""


class Waiting:
    """Calls functions of the store again until it can be reached; `hurry` ends that soon, as after Ctrl-C.

    One for everything that a session does with its store, in any thread.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest = longest
        self._until = math.inf  # when everything ends, in seconds of `time.monotonic`
        self._hurried, self._told = Event(), asyncio.Event()
        self._calls: dict[_Call, None] = {}
        self.free_since = 0.0  # when something that had to wait went on

    def hurry(self, seconds: float = GRACE) -> None:
        """Wait only that long from now on, at most; for tasks, call it in their loop."""
        self._until = min(self._until, time.monotonic() + seconds)
        self._hurried.set()
        self._told.set()

    @property
    def hurried(self) -> bool:
        return self._hurried.is_set()

    @property
    def over(self) -> bool:
        """Whether there is no time left: every error is raised at once."""
        return time.monotonic() >= self._until

    def why(self) -> str:
        """Return what everything waits for at the moment, in words; empty if it is not the store."""
        calls = list(self._calls)
        reasons = [call.reason for call in calls if call.reason]
        if reasons:
            return reasons[0]
        waited = time.monotonic() - min((call.since for call in calls), default=math.inf)
        return f"the store has not replied for {waited:.0f} s" if waited >= _SLOW else ""

    def call(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function whose work is one reading or one transaction, again if the database was out of reach."""
        outer = _CURRENT.set((self, call := _Call()))
        self._calls[call] = None
        deadline = call.since + self.longest
        try:
            while True:
                try:
                    return work(*args, **options)
                except StoreBusyError as error:
                    if self.over or time.monotonic() > deadline:
                        raise
                    call.reason = error.reason
                    self._pause()
        finally:
            del self._calls[call]
            _CURRENT.reset(outer)
            if call.reason or time.monotonic() - call.since >= _SLOW:
                self.free_since = time.monotonic()

    def _pause(self) -> None:
        """Wait before another attempt; in a hurry too, for the store may come back before the time is over."""
        if self._hurried.wait(PAUSE):
            time.sleep(PAUSE)

    async def in_thread(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function in a thread, which is left to itself if it has not come back when the time is over."""
        calling = asyncio.ensure_future(call_in_thread(copy_context().run, work, *args, **options))
        try:
            if not await self.ended(calling, self.longest + _REPLY):
                raise StoreUnreachableError("the store does not reply")
            result: T = calling.result()
            return result
        finally:
            calling.cancel()

    async def call_in_thread(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Do both: call it again if the database was out of reach, in a thread."""
        return await self.in_thread(partial(self.call, work, *args, **options))

    async def ended(self, work: asyncio.Future[Any], longest: float | None = None) -> bool:
        """Wait until something has ended, in a hurry only as long as there is time; return whether it has."""
        told = asyncio.ensure_future(self._told.wait())
        try:
            await asyncio.wait((work, told), timeout=longest, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and self.hurried:
                # What is tried until the time is over has a moment to say why it failed.
                await asyncio.wait((work,), timeout=max(0.0, self._until - time.monotonic()) + _LAST)
        finally:
            told.cancel()
        return work.done()


_CURRENT: ContextVar[tuple[Waiting, _Call] | None] = ContextVar("waiting", default=None)


def current() -> Waiting:
    """Return what the function of the store that is being called is waited for with."""
    found = _CURRENT.get()
    return Waiting() if found is None else found[0]


def note(reason: str) -> None:
    """Say what a function of the store that has not ended is waiting for; an empty reason: it goes on."""
    found = _CURRENT.get()
    if found is not None:
        found[1].reason = reason
