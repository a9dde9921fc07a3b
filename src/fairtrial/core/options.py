"""Conversion of user input into typed data; reports every problem with its path and the nearest valid key."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.scorer import Scorer

S = TypeVar("S", bound=msgspec.Struct)
Path = tuple[str | int, ...]
Problems = list[tuple[Path, str]]

_FAILED: Any = object()
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}


def read(cls: type[S], value: Any, problems: Problems, path: Path = ()) -> S | None:
    """Read a struct from a mapping and append every problem to `problems`.

    A struct with `words` may be written as one of them, a key that is true; `find_problems` says what else is wrong.
    Whatever could be read is returned despite problems, so that later checks can report the rest in the same pass;
    None only if too little is left.
    """
    if isinstance(value, str):
        value = _written_out(cls, value)
    if not isinstance(value, Mapping):
        problems.append((path, f"must be a mapping, not {_shown(value)}"))
        return None
    known = _fields(cls)
    read_values: dict[str, Any] = {}
    hints: set[str] = set()
    for key, item in value.items():
        if key not in known:
            hint = registry.nearest(str(key), list(known))
            problems.append(((*path, str(key)), "unknown key" + ("" if hint in hints else hint)))  # all known keys once
            hints.add(hint)
        elif (read_value := _read_value(known[key].type, item, problems, (*path, key))) is not _FAILED:
            read_values[known[key].name] = read_value
    required = [field for field in known.values() if field.required]
    for field in required:
        if field.encode_name not in value:
            problems.append((path, f"`{field.encode_name}` is missing"))
        if field.name not in read_values:  # a placeholder, so that entries keep their positions and checks can go on
            read_values |= _placeholder(field.name, field.type)
    if not all(field.name in read_values for field in required):
        return None
    return _made(cls, read_values, problems, path)


def _made(cls: type[S], values: dict[str, Any], problems: Problems, path: Path) -> S | None:
    try:
        result = cls(**values)
    except ValueError as error:  # what the types of its fields cannot say
        problems.append((path, str(error)))
        return None
    problems += [((*path, *inner), message) for inner, message in getattr(result, "find_problems", tuple)()]
    return result


def _written_out(cls: type[msgspec.Struct], text: str) -> Any:
    """Return the mapping that a text stands for, if there is a short form."""
    shorthand, words = getattr(cls, "shorthand", None), getattr(cls, "words", ())
    if shorthand:
        return {shorthand: text}
    return {text: True} if words else text


def _placeholder(name: str, hint: Any) -> dict[str, Any]:
    if hint is str:
        return {name: ""}
    return {name: []} if _inner_struct(hint)[1] is list else {}


@cache
def _fields(cls: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(cls)}


def _read_value(hint: Any, value: Any, problems: Problems, path: Path) -> Any:
    struct, shape = _inner_struct(hint)
    if struct is not None and value is not None:
        if shape is None:
            result = read(struct, value, problems, path)
            return _FAILED if result is None else result
        if shape is list and isinstance(value, list) and value:
            items = (read(struct, item, problems, (*path, index)) for index, item in enumerate(value))
            return [item for item in items if item is not None]
        if shape is dict and isinstance(value, dict):
            entries = ((key, read(struct, item or {}, problems, (*path, key))) for key, item in value.items())
            return {key: item for key, item in entries if item is not None}
    try:
        # Not strict: a number from a variable is still text here.
        result = msgspec.convert(value, hint, strict=False)
        if isinstance(result, float) and not math.isfinite(result):
            problems.append((path, f"must be a finite number, not {_shown(value)}"))
            return _FAILED
        return result
    except (msgspec.ValidationError, TypeError) as error:
        problems.append((path, _in_words(str(error), hint, value)))
        return _FAILED


@cache
def _inner_struct(hint: Any) -> tuple[Any, Any]:
    """Return the struct inside a type hint, and the list or dict that contains it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _inner_struct(arguments[0])
    if origin in (Union, types.UnionType):
        inner_structs = [inner for inner in map(_inner_struct, arguments) if inner[0] is not None]
        return inner_structs[0] if inner_structs else (None, None)
    if origin in (list, tuple) and _is_struct(arguments[0]):
        return arguments[0], list
    if origin is dict and _is_struct(arguments[1]):
        return arguments[1], dict
    return (hint, None) if _is_struct(hint) else (None, None)


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _in_words(message: str, hint: Any, value: Any) -> str:
    """Translate msgspec's message into the wording of this project."""
    choices = [str(choice) for choice in _choices(hint)]
    if "Invalid enum value" in message and choices:
        return f"must be one of {', '.join(choices)}, not {_shown(value)}"
    limit = re.fullmatch(r"Expected `\w+` ([<>]=?) (\S+?)(?:\.0)?(?: - at .*)?", message)
    if limit:
        return f"must be {limit[1]} {limit[2]}, not {_shown(value)}"
    if "of length" in message:
        return "must not be empty"
    location = re.search(r" - at `\$?([^`]*)`", message)
    expected = re.match(r"Expected `([^`]+)`", message)
    if expected:
        words = " or ".join(_WORDS.get(word.strip(), word.strip()) for word in expected[1].split("|"))
        inside = f" (at {location[1].lstrip('.')})" if location and location[1] else ""
        return f"must be {words}{inside}, not {_shown(value)}"
    field = re.search(r"(unknown|missing required) field `([^`]*)`", message)
    if field:
        return f"unknown key `{field[2]}`" if field[1] == "unknown" else f"`{field[2]}` is missing"
    return re.sub(r" - at `[^`]*`", "", message)


def _choices(hint: Any) -> tuple[Any, ...]:
    """Return the values that a hint lists, wherever in it."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next(filter(None, map(_choices, get_args(hint))), ())


def _shown(value: Any) -> str:
    text = "empty" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def scorer_problems(spec: Any) -> Problems:
    """Return the problems of a scorer spec: a name, or a mapping with `type` and options."""
    problems: Problems = []
    _read_scorer(spec, problems)
    return problems


def build_scorer(spec: Any) -> Scorer:
    """Build a scorer from its name or mapping; for specs in which `scorer_problems` finds no problem."""
    problems: Problems = []
    scorer = _read_scorer(spec, problems)
    if scorer is None or problems:
        raise FairtrialError("; ".join(message for _, message in problems))
    return scorer


def _read_scorer(spec: Any, problems: Problems) -> Scorer | None:
    options = scorer_spec(spec)
    if not isinstance(spec, str | Mapping) or not isinstance(options.get("type"), str):
        problems.append(((), "a scorer must be a name, or a mapping with `type` and its options"))
        return None
    try:
        cls = registry.load("scorers", options["type"])
    except FairtrialError as error:
        problems.append((("type",), str(error)))
        return None
    own_options = {key: value for key, value in options.items() if key != "type"}
    return cast("Scorer | None", read(cls, own_options, problems))


def scorer_spec(scorer: Any) -> ScorerSpec:
    """Return a scorer as a mapping: a name is a scorer without options, and anything else an unknown one."""
    if scorer is None or isinstance(scorer, Mapping):
        return cast("ScorerSpec", scorer)
    return {"type": scorer if isinstance(scorer, str) else _shown(scorer)}


def functions_in(spec: Any) -> list[str]:
    """Return the names of the functions that a scorer calls, also those of scorers inside it."""
    if isinstance(spec, Mapping):
        own = [str(spec["function"])] if spec.get("type") == "python" and "function" in spec else []
        return own + [name for value in spec.values() for name in functions_in(value)]
    return [name for item in spec for name in functions_in(item)] if isinstance(spec, list | tuple) else []
