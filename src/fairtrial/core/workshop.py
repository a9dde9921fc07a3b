"""Sharing of tools that are expensive to start, such as a browser: opened on first use and closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Opener = Callable[[], AbstractAsyncContextManager[T]]


class Workshop:
    """The tools shared by the scorers of one session. An async context manager."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._tools: dict[Any, Any] = {}
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Workshop:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def tool(self, opener: Opener[T]) -> T:
        """Return the opener's tool; the first call opens it. After a failure, the next call tries again."""
        async with self._lock:
            if opener not in self._tools:
                self._tools[opener] = await self._stack.enter_async_context(opener())
            tool: T = self._tools[opener]
            return tool


@asynccontextmanager
async def borrowed(workshop: Workshop | None, opener: Opener[T]) -> AsyncIterator[T]:
    """Yield the workshop's tool, or without a workshop a tool opened just for this block."""
    if workshop is not None:
        yield await workshop.tool(opener)
        return
    async with opener() as tool:
        yield tool
