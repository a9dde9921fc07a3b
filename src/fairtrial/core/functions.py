"""Functions that are given as such, in Python: what they are called in a plan, and a hash of their code.

A plan is plain data, so a function stands in it by its name: `module:function` if it can be imported under that name,
else `function#hash`, which only the process that gave it can call. The hash covers the source of the function, its
defaults, what it closes over, and the constants and functions of its own module that it uses. It does not cover
imported modules, lists, dictionaries and sets outside the function, which may hold state, or what objects hold beside
plain data.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fairtrial.core.secrets import is_credential

Function = Callable[..., Any]
Functions = Mapping[str, Function]  # by the name in the plan, such as `my_function#0f3a…`

MARK = "#"  # before the hash of a function without an importable name; no module or file name has it
UNSOURCED = "unsourced"
_LENGTH = 12
_DEPTH = 8
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def is_given(name: str) -> bool:
    """Return whether a name in a plan stands for a function without an importable name."""
    return MARK in name


def own_name(name: str) -> str:
    """Return what people call a function of a plan: without its hash."""
    return name.partition(MARK)[0]


def importable_name(function: Any) -> str | None:
    """Return `module:function` if that is how another process would find this very function; else None."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or not name.isidentifier():
        return None
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is function else None


def plain_name(function: Any) -> str:
    """Return a short name for a function or object, as people would call it."""
    if isinstance(function, functools.partial):
        return plain_name(function.func)
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)


def code_hash(function: Any) -> str | None:
    """Return a hash of a function's code, or None if its source is not available."""
    digest = hashlib.sha256()
    try:
        for part in _parts(function, _DEPTH, set()):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    except OSError:
        return None
    return digest.hexdigest()[:_LENGTH]


def _parts(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield everything that makes up a function or a value; raise OSError if the source is not available."""
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    elif id(value) in seen or depth == 0:
        yield "…"
    else:
        seen.add(id(value))
        yield from _compound_parts(value, depth - 1, seen)


def _compound_parts(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item, depth, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(part for item in value for part in _parts(item, depth, seen))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key)
            yield from _parts(value[key], depth, seen)
    else:
        yield from _code_parts(value, depth, seen)


def _code_parts(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    if isinstance(value, functools.partial):
        yield from _parts((value.func, value.args, value.keywords), depth, seen)
    elif isinstance(value, types.MethodType):
        yield from _parts((value.__func__, value.__self__), depth, seen)
    elif isinstance(value, types.FunctionType):
        yield from _function_parts(value, depth, seen)
    elif isinstance(value, type):
        yield _class_source(value)
    elif isinstance(value, types.BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield from _object_parts(value, depth, seen)


def _object_parts(value: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield the class of an object and those of its attributes that are plain data; keys do not change what it does."""
    yield f"{type(value).__module__}.{type(value).__qualname__}"
    yield _class_source(type(value))
    attributes = getattr(value, "__dict__", {})
    for name in sorted(attributes):
        if isinstance(attributes[name], _PLAIN) and not is_credential(name):
            yield name
            yield repr(attributes[name])


def _class_source(cls: type) -> str:
    """Return the source of a class of the user's; a class of an installed package counts by its name."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    if cls.__module__ == "builtins" or "site-packages" in file:
        return f"{cls.__module__}.{cls.__qualname__}"
    try:
        return textwrap.dedent(inspect.getsource(cls))
    except TypeError as error:  # a class of an interactive session
        raise OSError(str(error)) from None


def _function_parts(function: types.FunctionType, depth: int, seen: set[int]) -> Iterator[str]:
    yield _source(function.__code__)
    yield from _parts((function.__defaults__, function.__kwdefaults__), depth, seen)
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if not isinstance(value, list | dict | set):  # which may hold state that changes from call to call
            yield from _parts(value, depth, seen)
    for name in sorted(_global_names(function.__code__)):
        value = function.__globals__.get(name)
        if isinstance(value, types.FunctionType | type) and value.__module__ == function.__module__:
            yield name
            yield from _parts(value, depth, seen)
        elif isinstance(value, _PLAIN) and name in function.__globals__:
            yield name
            yield repr(value)


def _source(code: types.CodeType) -> str:
    """Return the source of a function; of a lambda, only its own part of the line."""
    lines, first = inspect.getsourcelines(code)
    if code.co_name != "<lambda>":
        return textwrap.dedent("".join(lines))
    places = [place for place in code.co_positions() if None not in place and place[1] is not None]
    inner = [(line, start, end, stop) for line, end, start, stop in places if (start, stop) != (0, 0)]
    if not inner:
        return "".join(lines)
    top = min((line, start) for line, start, _, _ in inner)
    bottom = max((end, stop) for _, _, end, stop in inner)
    names = ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return f"lambda {names}: " + _cut(lines, first, top, bottom)


def _cut(lines: list[str], first: int, top: tuple[Any, Any], bottom: tuple[Any, Any]) -> str:
    """Return the text between two places; columns count bytes."""
    chosen = [line.encode() for line in lines[top[0] - first : bottom[0] - first + 1]]
    if not chosen:
        return "".join(lines)
    chosen[-1] = chosen[-1][: bottom[1]]
    chosen[0] = chosen[0][top[1] :]
    return b"".join(chosen).decode("utf-8", "replace")


def _global_names(code: types.CodeType) -> set[str]:
    """Return the names of globals that a function reads and does not assign, also in functions inside it."""
    import dis

    read: set[str] = set()
    assigned: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            read.add(str(instruction.argval))
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            assigned.add(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            read |= _global_names(constant)
    return read - assigned
