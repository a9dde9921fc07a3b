"""What is expected of an answer: one right answer, several accepted ones, or none."""

from __future__ import annotations

from typing import Any

import msgspec

Expected = str | tuple[str, ...] | None


def read_expected(value: Any) -> Expected:
    """Read an `expected` value: text, anything with a text form, or a list of those."""
    if isinstance(value, list | tuple):
        texts = tuple(dict.fromkeys(text_of(item) for item in value if item is not None))
        return texts if len(texts) > 1 else next(iter(texts), None)
    return None if value is None else text_of(value)


def show_expected(expected: Expected) -> str:
    """Format the expected answer for display."""
    return expected or "" if not isinstance(expected, tuple) else "\nor\n".join(expected)


def text_of(value: Any) -> str:
    """Return a value as text: as JSON, if it is none."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
