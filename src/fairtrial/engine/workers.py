"""Process a stream of work with many workers, keeping only what they need in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
_READ_AHEAD = 256  # items that are read before there is a worker for them


async def for_each(items: AsyncIterator[T], work: Callable[[T], Awaitable[None]], workers: int) -> None:
    """Call `work` for every item; the first exception stops all workers."""
    queue: asyncio.Queue[tuple[T] | None] = asyncio.Queue(maxsize=min(workers, _READ_AHEAD))

    async def worker() -> None:
        while (item := await queue.get()) is not None:
            await work(item[0])

    async with asyncio.TaskGroup() as group:
        started = 0
        async for item in items:
            if started < workers:  # no more than there are items: thousands may be allowed
                group.create_task(worker())
                started += 1
            await queue.put((item,))
        for _ in range(started):
            await queue.put(None)
