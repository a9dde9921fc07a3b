"""Every verb is written once, sync or async, and its twin is made here; `fairtrial/__init__.pyi` has both types."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result, even if an event loop is already running (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_thread(work)


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread with a loop of its own; an interrupt ends it and keeps what is done."""
    results: list[T] = []
    errors: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def noted() -> T:
        started.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def target() -> None:
        try:
            results.append(asyncio.run(noted()))
        except BaseException as error:  # whatever it is, it is raised where the caller waits
            errors.append(error)

    thread = threading.Thread(target=target, name="fairtrial-loop", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in started:
            if task is not None and not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return results[0]


def async_twin(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Return the async twin of a function that reads and computes: the same in a thread."""
    name = f"a{function.__name__}"

    async def twin(*args: P.args, **keywords: P.kwargs) -> T:
        _check_arguments(name, function, *args, **keywords)
        return await asyncio.to_thread(function, *args, **keywords)

    note = f"{function.__doc__}\n\n    The async twin of `{function.__name__}`.\n    "
    return _named(name, twin, function, note)


def sync_twin(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the sync twin of an async function."""
    name = function.__name__.removeprefix("a")

    def twin(*args: P.args, **keywords: P.kwargs) -> T:
        _check_arguments(name, function, *args, **keywords)
        return wait_for(function(*args, **keywords))

    return _named(name, twin, function, function.__doc__)


def _check_arguments(twin: str, function: Callable[P, Any], /, *args: P.args, **keywords: P.kwargs) -> None:
    """Raise the TypeError of a wrong call under the name that was called."""
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{twin}() {error}") from None


def _named(name: str, twin: Callable[P, T], function: Callable[P, Any], doc: str | None) -> Callable[P, T]:
    """Give a twin the signature of its function, and a name and docstring of its own."""
    functools.update_wrapper(twin, function)
    twin.__name__ = twin.__qualname__ = name
    twin.__doc__ = doc
    return twin
