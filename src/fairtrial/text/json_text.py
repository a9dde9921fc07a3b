"""Finding JSON in model output, which often wraps it in prose or code fences."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from fairtrial.text.printable import paired

_FENCE = re.compile(r"\s*```\w*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_DECODER = json.JSONDecoder()
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # how JSON may write half of a surrogate pair
_MAX_WORK = 10_000_000  # characters read without a result: bounds the time spent on a text full of brackets


class JsonValue(NamedTuple):
    """A JSON value; the wrapper distinguishes a null from "nothing found"."""

    value: Any


def last_json(text: str, *, strict: bool = False) -> JsonValue | None:
    """Return the last complete JSON object or array in a text; with `strict`, the whole text must be JSON."""
    try:
        return JsonValue(in_pairs(json.loads(text), text))
    except (ValueError, RecursionError):
        return None if strict else next(iter(deque(find_json(text), maxlen=1)), None)


def unfenced(text: str) -> str:
    """Remove the code fence around a text, if there is one."""
    match = _FENCE.fullmatch(text)
    return match[1] if match else text


def find_json(text: str) -> Iterator[JsonValue]:
    """Yield every complete JSON object or array in a text, in order; those inside another are part of it."""
    position, work = 0, 0
    while work < _MAX_WORK and (start := _next_opening(text, position)) >= 0:
        try:
            # Decode a slice: on an error the decoder counts the lines before it, which would scan the whole text.
            value, length = _DECODER.raw_decode(text[start:])
            yield JsonValue(in_pairs(value, text))
            position = start + length
        except ValueError as error:
            work += getattr(error, "pos", 0) + 100
            position = start + 1
        except RecursionError:
            work += 300_000  # roughly what the decoder reads before it gives up
            position = start + 1


def _next_opening(text: str, position: int) -> int:
    openings = [index for index in (text.find("{", position), text.find("[", position)) if index >= 0]
    return min(openings, default=-1)


def in_pairs(value: Any, written: str) -> Any:
    """Return a value, written so, without unpaired surrogates, which JSON can write and nothing else can read."""
    if not _HALF.search(written):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return value if (whole := paired(text)) is text else json.loads(whole)


def same_json(left: Any, right: Any) -> bool:
    """Return whether two values are equal as JSON: true is not 1, but 1.0 is."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
