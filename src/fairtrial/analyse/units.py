"""Scores are 0–1 inside and 0–100 for people. This is the way from one to the other, for documents of any shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect

Converter = Callable[[Any], Any]


def points(value: float | None) -> float | None:
    """A score as people read it: 0–100."""
    return None if value is None else round(100 * value, 10)


def in_points(struct: msgspec.Struct) -> dict[str, Any]:
    """A struct as a document, with every number that its type calls `Measured` as 0–100."""
    return _converter(type(struct))(struct)  # type: ignore[no-any-return]


@lru_cache
def _converter(kind: type) -> Converter:
    return _of(inspect.type_info(kind))


def _of(kind: inspect.Type) -> Converter:
    """How a value of a type becomes part of a document."""
    convert: Converter = msgspec.to_builtins
    match kind:
        case inspect.Metadata(extra={"measured": True}):
            convert = points
        case inspect.Metadata(type=inner):
            convert = _of(inner)
        case inspect.StructType(fields=fields):
            parts = [(field.name, _of(field.type)) for field in fields]
            convert = lambda value: {name: part(getattr(value, name)) for name, part in parts}  # noqa: E731
        case inspect.UnionType(types=types):
            convert = _optional(types)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            one = _of(item)
            convert = lambda value: [one(item) for item in value]  # noqa: E731
        case inspect.TupleType(item_types=items):
            each = [_of(item) for item in items]
            convert = lambda value: [part(item) for part, item in zip(each, value, strict=True)]  # noqa: E731
        case inspect.DictType(value_type=item):
            one = _of(item)
            convert = lambda value: {name: one(item) for name, item in value.items()}  # noqa: E731
    return convert


def _optional(types: tuple[inspect.Type, ...]) -> Converter:
    """None, or a value of one type; other unions have no scores in them."""
    known = [kind for kind in types if not isinstance(kind, inspect.NoneType)]
    if len(known) != 1:
        return msgspec.to_builtins
    one = _of(known[0])
    return lambda value: None if value is None else one(value)
