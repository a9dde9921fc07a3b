"""Calls of user functions that may block or never return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


async def call_in_thread(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a function in a thread of its own and return its result.

    The thread is a daemon, so a call that hangs blocks neither other calls, as it would in a shared pool, nor the exit
    of the program. Cancelling the wait leaves the thread running.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def report(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):  # a future cannot hold these exceptions
            future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        else:
            future.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = function(*args, **keywords)
        except BaseException as raised:  # every exception must reach the waiting coroutine
            error = raised
        with suppress(RuntimeError):  # the loop may be closed: then nothing is waiting any more
            loop.call_soon_threadsafe(report, result, error)

    threading.Thread(target=work, daemon=True, name=f"fairtrial-{getattr(function, '__name__', 'call')}").start()
    return await future
