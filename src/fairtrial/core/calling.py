"""Calls of users' own functions, which may block or never return, with the arguments that their signatures ask for."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


async def call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a function: async ones here, others in a thread of their own, so that one that hangs blocks nothing."""
    if is_async(function):
        return await function(*arguments, **keywords)
    result = await call_in_thread(function, *arguments, **keywords)
    return await result if inspect.isawaitable(result) else result


def is_async(function: Any) -> bool:
    """Return whether calling a function or object gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004  # not whether it is callable, but how
    )


def parameters_of(function: Any) -> list[inspect.Parameter] | None:
    """Return the parameters of a function; None if it does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables have no signature
        return None


def named_arguments(function: Any, available: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the available values that the function has parameters for."""
    parameters = parameters_of(function)
    if parameters is None or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(available)
    return {p.name: available[p.name] for p in parameters if p.name in available and p.kind in _NAMED}


def unknown_parameter(function: Any, known: Collection[str]) -> str | None:
    """Return the first parameter that must be given and is not known; None if there is none."""
    for parameter in parameters_of(function) or ():
        needed = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        )
        if needed and (parameter.name not in known or parameter.kind not in _NAMED):
            return parameter.name
    return None


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
