"""Calling a user's function that may block, or never return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


async def call_in_thread(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """The result of a function, called in a thread of its own.

    The thread is a daemon: one that hangs holds up neither the others, which would share a pool with it, nor the end of
    the program. Giving up the wait leaves it behind.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def report(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(
            error, StopIteration | SystemExit | KeyboardInterrupt
        ):  # a future cannot carry these as they are
            future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = function(*args, **keywords)
        except BaseException as raised:  # whatever it is, the one who waits must hear of it
            error = raised
        with suppress(RuntimeError):  # the loop may have ended: then nobody waits any more
            loop.call_soon_threadsafe(report, result, error)

    threading.Thread(target=work, daemon=True, name=f"fairtrial-{getattr(function, '__name__', 'call')}").start()
    return await future
