"""Replies that are almost JSON: an answer that was paid for is read if it can be.

Only what a strict decoder refuses comes here: a byte order mark, UTF-16, half of a surrogate pair, NaN, control
characters in a text, something behind the value. What is not UTF-8 stays unreadable.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable
from typing import TypeVar

from fairtrial.core.answer import Failure

Read = TypeVar("Read")

_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LONGEST_NUMBER = 300  # digits


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else None


def _fraction(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_fraction, parse_int=_whole)


def read_mended(read: Callable[[bytes], Read], body: bytes) -> Read:
    """Read a body, and if it cannot be read as it came, once more as what it says in plain JSON."""
    result = read(body)
    if isinstance(result, Failure) and result.kind in ("malformed", "stream"):
        better = mended(body)
        return result if better is None else read(better)
    return result


def mended(body: bytes) -> bytes | None:
    """Return what a body says as plain JSON in UTF-8; None if it says nothing, or did so well already."""
    try:
        text = _text(body).lstrip()
        value, end = _decoder.raw_decode(text)
        made = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or text[end:].lstrip()[:1] in ("{", "["):
        return None  # of two values, nobody knows which one counts
    better = made.decode("utf-16", "replace").encode()
    return None if better == body else better


def _text(body: bytes) -> str:
    if body.startswith(_WIDE) or body[:4].count(0) > 1:
        return body.decode(json.detect_encoding(body), "surrogatepass").removeprefix("\ufeff")
    return body.removeprefix(codecs.BOM_UTF8).decode()
