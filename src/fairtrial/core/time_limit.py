"""Time limits that count only the time in which this process could act."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

_STEPS = 16
_LONGEST_STEP = 1.0  # seconds


class time_limit:  # noqa: N801  # used like `asyncio.timeout`
    """Raise TimeoutError in the block after this many seconds in which the event loop was running.

    A process that was stopped (Ctrl-Z), or that a busy machine did not let run, finds an answer that arrived meanwhile
    and an expired timer at the same moment; with `asyncio.timeout` the timer would win. So it counts down in small
    steps; a step that took much longer than it should is counted as a normal one.
    """

    def __init__(self, seconds: float) -> None:
        self._left, self._step = seconds, min(seconds / _STEPS, _LONGEST_STEP)
        self._expired = False
        self._pauses = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the time in this block, roughly: whoever waits for others has not used it."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "a time limit is for a task"
        self._task, self._cancelling, self._loop = task, task.cancelling(), task.get_loop()
        self._begin_step()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._timer.cancel()
        # If somebody else has cancelled the task as well, that is what happened.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _begin_step(self) -> None:
        self._begun = self._loop.time()
        self._timer = self._loop.call_later(min(self._step, self._left), self._end_step)

    def _end_step(self) -> None:
        if not self._pauses:
            self._left -= min(self._loop.time() - self._begun, 2 * self._step)
        if self._left > 0:
            self._begin_step()
        else:
            self._expired = True
            self._task.cancel()
