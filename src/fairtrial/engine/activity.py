"""Whether a session goes on by itself, or everything waits for batches: then no more requests will join those."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET = 2.0  # seconds without anything new after which a batch is taken for complete


class Activity:
    """Counts what goes on, and calls back when nothing has for a while."""

    def __init__(self) -> None:
        self._busy = 0
        self._when_quiet: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def when_quiet(self, call: Callable[[], None]) -> None:
        """Have a function called whenever nothing goes on."""
        self._when_quiet.append(call)

    def busy(self) -> Busy:
        """Return a context that counts as busy while its block runs, except while that waits for batches."""
        return Busy(self)

    def add(self, change: int) -> None:
        """Count something that began or ended."""
        self._busy += change
        self.touch()

    def touch(self) -> None:
        """Record activity; restart the idle timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._busy == 0 and self._when_quiet:
            self._timer = asyncio.get_running_loop().call_later(QUIET, self._quiet)

    def _quiet(self) -> None:
        self._timer = None
        for call in self._when_quiet:
            call()


class Busy:
    """Something that goes on, such as a trial; it may wait for several batches at once, as for a panel of judges."""

    def __init__(self, activity: Activity) -> None:
        self._activity, self._waits = activity, 0

    def __enter__(self) -> Busy:
        self._activity.add(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._activity.add(-1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not count as busy while the block waits for a batch."""
        self._waits += 1
        if self._waits == 1:
            self._activity.add(-1)
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                self._activity.add(1)
