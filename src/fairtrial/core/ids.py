"""Identity: runs are named by time, everything else by content."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any

import msgspec

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u to misread


def _base32(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_id() -> str:
    """A new id that sorts by the time it was made: milliseconds, then chance."""
    return f"{_base32(time.time_ns() // 1_000_000, 9)}-{_base32(secrets.randbits(25), 5)}"


def canonical_json(value: Any) -> bytes:
    """The one way to write a value, so that equal content has equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def content_hash(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
