"""Ids: those of runs come from the time, all others from a hash of the content."""

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
    """Return a new id that sorts by creation time: milliseconds, then random bits."""
    return f"{_base32(time.time_ns() // 1_000_000, 9)}-{_base32(secrets.randbits(25), 5)}"


def sorted_after(newest: str | None, fresh: str) -> str:
    """Return a new id, or one a millisecond after the newest that there is, should it sort before that."""
    if newest is None or fresh > newest:
        return fresh
    milliseconds = 0
    for digit in newest.partition("-")[0]:
        milliseconds = 32 * milliseconds + _ALPHABET.find(digit)
    return f"{_base32(milliseconds + 1, 9)}-{fresh.rpartition('-')[2]}"


def dated_id(created: float | None, digest: bytes) -> str:
    """Return the id of a run that was made elsewhere: the same for the same content, sorted by when it was made."""
    bits = int.from_bytes(digest[:8], "big")
    milliseconds = int((created or 0.0) * 1000) or (bits >> 20)
    return f"{_base32(milliseconds % 32**9, 9)}-{_base32(bits & (2**25 - 1), 5)}"


def canonical_json(value: Any) -> bytes:
    """Encode a value as JSON so that equal content gives equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
