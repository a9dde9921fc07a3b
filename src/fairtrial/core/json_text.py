"""JSON inside text: models wrap it in prose and code fences."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()


class Found(NamedTuple):
    """A JSON value, told apart from "nothing found" even when it is null."""

    value: Any


def last_json(text: str, *, strict: bool = False) -> Found | None:
    """The last complete JSON object or array in a text; with `strict`, the whole text as JSON."""
    try:
        return Found(json.loads(text))
    except (ValueError, RecursionError):
        return None if strict else _search(text)


def _search(text: str) -> Found | None:
    found, position = None, 0
    while (start := _next_opening(text, position)) >= 0:
        try:
            value, position = _DECODER.raw_decode(text, start)
            found = Found(value)
        except (ValueError, RecursionError):
            position = start + 1
    return found


def _next_opening(text: str, position: int) -> int:
    places = [place for place in (text.find("{", position), text.find("[", position)) if place >= 0]
    return min(places, default=-1)
