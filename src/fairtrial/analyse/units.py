"""Results as documents: scores of 0–1 become the 0–100 shown to users, facts become words."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import inspect


def points(value: float | None) -> float | None:
    """Convert a score from 0–1 to 0–100."""
    return None if value is None else round(100 * value, 10)


def in_points(struct: msgspec.Struct) -> dict[str, Any]:
    """Return a struct as a document, with every number of type `Measured` as 0–100."""
    document: dict[str, Any] = _document(struct, _type_info(type(struct)), points)
    return document


def as_document(struct: msgspec.Struct) -> dict[str, Any]:
    """Return a struct as a document, with every number as it is."""
    document: dict[str, Any] = _document(struct, _type_info(type(struct)), lambda value: value)
    return document


_type_info = lru_cache(inspect.type_info)


def _document(value: Any, kind: inspect.Type, shown: Callable[[float | None], float | None]) -> Any:
    match kind:
        case inspect.Metadata(extra={"measured": True}):
            document: Any = shown(value)
        case inspect.Metadata(type=inner):
            document = _document(value, inner, shown)
        case inspect.StructType(fields=fields):
            document = {field.encode_name: _field(value, field, shown) for field in fields}
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            document = [_document(one, item, shown) for one in value]
        case inspect.TupleType(item_types=items):
            document = [_document(one, item, shown) for one, item in zip(value, items, strict=True)]
        case inspect.DictType(value_type=item):
            document = {name: _document(one, item, shown) for name, one in value.items()}
        case inspect.UnionType(types=(inspect.NoneType(), one) | (one, inspect.NoneType())) if value is not None:
            document = _document(value, one, shown)
        case _:
            document = msgspec.to_builtins(value)
    return document


def _field(struct: Any, field: inspect.Field, shown: Callable[[float | None], float | None]) -> Any:
    """Return a field; facts, which are called otherwise in documents, in words."""
    if field.encode_name != field.name:
        return getattr(struct, field.encode_name)
    return _document(getattr(struct, field.name), field.type, shown)
