"""Time limits that are over when something has happened, and not after seconds that a slow machine needs itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairtrial.core.time_limit import time_limit


def limit_reached_when(true: Callable[[], bool]) -> Callable[[float], Any]:
    """A `time_limit` for `fairtrial.engine.ladder` that is reached as soon as this is true."""

    class Reached(time_limit):
        async def __aenter__(self) -> None:
            await super().__aenter__()
            self._timer.cancel()
            self._look()

        def _look(self) -> None:
            if true():
                self._left = 0.0
                self._begin_step()
            else:
                self._timer = self._loop.call_later(0.02, self._look)

    return Reached
