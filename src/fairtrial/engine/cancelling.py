"""Cancelling a run loses nothing that has arrived: short waits are finished first, and then nothing new is begun."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await something short to its end, even if this task is cancelled meanwhile; `raise_if_cancelled` then ends it."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()


def raise_if_cancelled() -> None:
    """Raise CancelledError if this task was cancelled while it finished what it had begun."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
