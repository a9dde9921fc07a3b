"""JSON schemas for replies, as each provider takes them."""

from __future__ import annotations

from typing import Any

_RANGES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    }
)


def without_ranges(schema: Any) -> Any:
    """Return a schema without keywords that structured outputs reject; ranges are checked when reading the reply."""
    if isinstance(schema, list):
        return [without_ranges(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in _RANGES}
    for key in ("items", "anyOf"):
        if key in result:
            result[key] = without_ranges(result[key])
    if "properties" in result:
        result["properties"] = {name: without_ranges(value) for name, value in result["properties"].items()}
    return result
