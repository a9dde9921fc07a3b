"""Tools that are dear to open, such as a browser: opened when a scorer first needs one, shared, closed in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Opener = Callable[[], AbstractAsyncContextManager[T]]


class Workshop:
    """What the scorers of one session share. An async context manager."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._tools: dict[Any, Any] = {}
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Workshop:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def tool(self, opener: Opener[T]) -> T:
        """The tool of that kind; whoever asks first waits until it is open. What cannot be opened is tried again."""
        async with self._one_at_a_time:
            if opener not in self._tools:
                self._tools[opener] = await self._stack.enter_async_context(opener())
            found: T = self._tools[opener]
            return found


@asynccontextmanager
async def borrowed(workshop: Workshop | None, opener: Opener[T]) -> AsyncIterator[T]:
    """The workshop's tool; where there is no workshop, one of one's own."""
    if workshop is not None:
        yield await workshop.tool(opener)
        return
    async with opener() as tool:
        yield tool
