"""Functions that are given as such, in Python: what they are called in a plan.

A plan is plain data, so a function is in it by its name: `module:function` if it can be imported under that name,
else `function#hash` (`fingerprint.code_hash`), which only the process that gave it can call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

Function = Callable[..., Any]
Functions = Mapping[str, Function]  # by the name in the plan, such as `my_function#0f3a…`

MARK = "#"  # before the hash of a function without an importable name; no module or file name has it


def is_given(name: str) -> bool:
    """Return whether a name in a plan stands for a function without an importable name."""
    return MARK in name


def own_name(name: str) -> str:
    """Return the display name of a function of a plan: without its hash."""
    return name.partition(MARK)[0]


def importable_name(function: Any) -> str | None:
    """Return `module:function` if that is how another process would find this very function; else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or not name.isidentifier():
        return None
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is function else None


def plain_name(function: Any) -> str:
    """Return a short name for a function or object, for display."""
    if isinstance(function, functools.partial):
        return plain_name(function.func)
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)
