"""How many calls of one lane may be under way: less after a 429, more again when calls succeed."""

from __future__ import annotations

import asyncio
from collections import deque

_SHRINK = 0.7
_CALM = 1.0  # seconds between two reductions: a burst of 429s is one message, not many
_OTHER_FILES = 40  # what a run has open beside its calls: the store, locks, libraries
_STORM = 3  # so many 429s in a row mean that the quota is gone, not that one call was unlucky


def calls_allowed(wanted: int) -> int:
    """How many calls may be under way at once: each takes a file of those that a process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))


class Limiter:
    """A gate whose width adapts. It also pauses as a whole when the provider says how long to wait."""

    def __init__(self, most: int, longest_pause: float = 60.0) -> None:
        self._most, self._width = most, float(most)
        self._longest_pause = longest_pause
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = self._last_cut = float("-inf")
        self._storm = 0

    @property
    def width(self) -> int:
        """How many calls may be under way now."""
        return int(self._width)

    async def __aenter__(self) -> None:
        while self._busy >= int(self._width) or self._paused():
            ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(ticket)
            try:
                await ticket
            except asyncio.CancelledError:
                self._wake()  # whoever was woken in vain passes it on
                raise
        self._busy += 1

    async def __aexit__(self, *_: object) -> None:
        self._busy -= 1
        self._wake()

    def _paused(self) -> bool:
        return self._closed_until > asyncio.get_running_loop().time()

    def _wake(self) -> None:
        if self._paused():
            return
        free = int(self._width) - self._busy
        while self._waiting and free > 0:
            ticket = self._waiting.popleft()
            if not ticket.done():
                ticket.set_result(None)
                free -= 1

    def succeeded(self) -> None:
        """A call went through: widen by one once a full width of calls has."""
        self._storm = 0
        if self._width < self._most:
            self._width = min(self._most, self._width + 1 / self._width)

    def throttled(self, retry_after: float | None) -> None:
        """A 429: narrow the gate, and close it for a while when they come in a row."""
        loop = asyncio.get_running_loop()
        self._storm += 1
        if loop.time() - self._last_cut >= _CALM:
            self._width = max(1.0, self._width * _SHRINK)
            self._last_cut = loop.time()
        if self._storm >= _STORM:
            pause = min(_CALM if retry_after is None else retry_after, self._longest_pause)
            self._closed_until = max(self._closed_until, loop.time() + pause)
            loop.call_at(self._closed_until, self._wake)
