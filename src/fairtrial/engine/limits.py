"""Limit how many calls of one lane are in flight: fewer after a 429, more again as calls succeed."""

from __future__ import annotations

import asyncio
import time
from collections import deque

_SHRINK = 0.7
_SECONDS_BETWEEN_CUTS = 1.0  # minimum seconds between two reductions: a burst of 429s counts as one
_OTHER_FILES = 40  # files that a run has open besides its calls: the store, locks, libraries
_NEVER = float("-inf")
_PAUSE_AFTER = 3  # this many 429s in a row mean that the quota is used up, not that one call was unlucky


def calls_allowed(wanted: int) -> int:
    """Return how many calls may be in flight at once: each uses one of the files that a process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))


class Limiter:
    """A semaphore whose width adapts. It also pauses all calls when the provider says how long to wait."""

    def __init__(self, most: int, longest_pause: float = 60.0) -> None:
        self._most, self._width = most, float(most)
        self._longest_pause = longest_pause
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = self._last_cut = _NEVER
        self._throttled_in_a_row = 0

    @property
    def width(self) -> int:
        """The number of calls that may be in flight now."""
        return int(self._width)

    @property
    def waiting(self) -> int:
        """The number of calls that wait for others to end."""
        return sum(not waiter.done() for waiter in list(self._waiting))  # pages ask from other threads

    @property
    def closed_until(self) -> float:
        """When calls may begin again, by the clock of the event loop."""
        return self._closed_until

    @property
    def pause(self) -> float:
        """The seconds for which no call may begin."""
        return 0.0 if self._closed_until == _NEVER else max(0.0, self._closed_until - _now())

    def held(self, waiting: int = 0) -> str:
        """Say what holds calls back at the moment: a pause that the provider asked for, or fewer calls at a time.

        `waiting` calls wait elsewhere.
        """
        queued, pause = waiting + self.waiting, self.pause
        queue = f", {queued} queued" if queued else ""
        if pause > 0:
            return f"waits {max(1, round(pause))} s: rate limit{queue}"
        if self.width < self._most:
            return f"takes {self.width} of {self._most} calls at a time: rate limit{queue}"
        return ""

    async def __aenter__(self) -> None:
        while not self._enter():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._leave()  # somebody else can have the slot that was passed on to this call
                raise
            if self.pause == 0:
                return
            self._leave()  # the pause began when the slot had been passed on

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _enter(self) -> bool:
        free = self._busy < int(self._width) and self.pause == 0
        self._busy += free
        return free

    def _leave(self) -> None:
        self._busy -= 1
        self._wake()

    def _wake(self) -> None:
        """Pass free slots on to the calls that wait, in their order; until those run, no other call can take them."""
        if self.pause > 0:
            return
        while self._waiting and self._busy < int(self._width):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._busy += 1

    def succeeded(self) -> None:
        """Note a successful call: the width grows by one per full width of successes."""
        self._throttled_in_a_row = 0
        if self._width < self._most:
            self._width = min(self._most, self._width + 1 / self._width)

    def throttled(self, retry_after: float | None) -> None:
        """Note a 429: reduce the width, and pause for a while after several in a row."""
        loop = asyncio.get_running_loop()
        self._throttled_in_a_row += 1
        if loop.time() - self._last_cut >= _SECONDS_BETWEEN_CUTS:
            self._width = max(1.0, self._width * _SHRINK)
            self._last_cut = loop.time()
        if self._throttled_in_a_row >= _PAUSE_AFTER:
            pause = min(_SECONDS_BETWEEN_CUTS if retry_after is None else retry_after, self._longest_pause)
            self._close(pause)

    def _close(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._closed_until = max(self._closed_until, loop.time() + seconds)
        loop.call_at(self._closed_until, self._wake)


def _now() -> float:
    """Return the time by the clock of the event loop; pages ask from threads without one, by the same clock."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
