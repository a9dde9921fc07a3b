"""Many workers on one stream of work, with no more of it in memory than they need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def for_each(items: AsyncIterator[T], work: Callable[[T], Awaitable[None]], workers: int) -> None:
    """Do the work for every item; the first exception ends it all."""
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
