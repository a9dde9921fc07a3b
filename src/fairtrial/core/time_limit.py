"""Time limits that count only the time in which this process could act."""

from __future__ import annotations

import asyncio
from types import TracebackType

_STEPS = 16
_LONGEST_STEP = 1.0  # seconds


class time_limit:  # noqa: N801  # used like `asyncio.timeout`
    """Raise TimeoutError in the block after this many seconds in which the event loop was running.

    A process that was stopped (Ctrl-Z), or that a busy machine did not let run, finds an answer that arrived meanwhile
    and an expired timer at the same moment; with `asyncio.timeout` the timer would win. So it counts down in small
    steps; a step that took much longer than it should is counted as a normal one.
    """

    def __init__(self, seconds: float) -> None:
        self._timeout, self._left = asyncio.timeout(None), seconds
        self._step = min(seconds / _STEPS, _LONGEST_STEP)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._loop = asyncio.get_running_loop()
        self._begin_step()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _begin_step(self) -> None:
        self._begun = self._loop.time()
        self._timer = self._loop.call_later(min(self._step, self._left), self._end_step)

    def _end_step(self) -> None:
        self._left -= min(self._loop.time() - self._begun, 2 * self._step)
        if self._left > 0:
            self._begin_step()
        else:
            self._timeout.reschedule(self._loop.time())
