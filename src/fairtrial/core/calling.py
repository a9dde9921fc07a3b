"""Calls of users' own functions with the arguments that their signatures ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fairtrial.core.threads import call_in_thread

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
