"""Time limits that are over when something has happened, and not after seconds that a slow machine needs itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any


def limit_reached_when(true: Callable[[], bool]) -> Callable[[float], Any]:
    """A `time_limit` for `fairtrial.engine.ladder` that is reached as soon as this is true."""

    @asynccontextmanager
    async def time_limit(_: float) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as timeout:
            waiting = asyncio.create_task(_expire(timeout, true))
            try:
                yield
            finally:
                waiting.cancel()

    return time_limit


async def _expire(timeout: asyncio.Timeout, true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.02)
    timeout.reschedule(asyncio.get_running_loop().time())
