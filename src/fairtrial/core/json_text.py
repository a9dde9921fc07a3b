"""JSON inside text: models wrap it in prose and code fences."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_FENCE = re.compile(r"\s*```\w*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_DECODER = json.JSONDecoder()
_MOST_WORK = 10_000_000  # characters read in vain: a text of nothing but brackets must not keep anybody busy


class JsonValue(NamedTuple):
    """A JSON value, told apart from "nothing found" even when it is null."""

    value: Any


def last_json(text: str, *, strict: bool = False) -> JsonValue | None:
    """The last complete JSON object or array in a text; with `strict`, the whole text as JSON."""
    try:
        return JsonValue(json.loads(text))
    except (ValueError, RecursionError):
        return None if strict else _search(text)


def unfenced(text: str) -> str:
    """A text that is one code fence without the fence."""
    match = _FENCE.fullmatch(text)
    return match[1] if match else text


def _search(text: str) -> JsonValue | None:
    found, position, work = None, 0, 0
    while work < _MOST_WORK and (start := _next_opening(text, position)) >= 0:
        try:
            # From its own beginning on: an error counts the lines before it, which is all of the text every time.
            value, length = _DECODER.raw_decode(text[start:])
            found, position = JsonValue(value), start + length
        except ValueError as error:
            work += getattr(error, "pos", 0) + 100
            position = start + 1
        except RecursionError:
            work += 300_000  # it read about so much before it gave up
            position = start + 1
    return found


def _next_opening(text: str, position: int) -> int:
    places = [place for place in (text.find("{", position), text.find("[", position)) if place >= 0]
    return min(places, default=-1)


def same_json(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1, but 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
