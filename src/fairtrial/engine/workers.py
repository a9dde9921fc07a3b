"""Process a stream of work with many workers, keeping only what they need in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def for_each(items: AsyncIterator[T], work: Callable[[T], Awaitable[None]], workers: int) -> None:
    """Call `work` for every item; the first exception stops all workers."""
    queue: asyncio.Queue[tuple[T] | None] = asyncio.Queue(maxsize=workers)

    async def worker() -> None:
        while (item := await queue.get()) is not None:
            await work(item[0])

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())
        async for item in items:
            await queue.put((item,))
        for _ in range(workers):
            await queue.put(None)
