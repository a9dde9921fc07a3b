"""Amounts that people and programs give: nothing can be compared with `nan`, and nothing reaches `inf`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairtrial.core.errors import FairtrialError

MOST_REPEATS = 1_000_000  # answers to one case: more would never end


def check_amount(name: str, value: float | None, *, positive: bool = False) -> None:
    """Raise if an amount is given that is negative or not a finite number; 0 is allowed unless it must be positive."""
    if value is None or (math.isfinite(value) and (value > 0 if positive else value >= 0)):
        return
    raise FairtrialError(f"`{name}` must be a finite number {'above 0' if positive else 'from 0 on'}, not {value:g}")


def not_finite(key: str, value: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield, as a problem of a suite, that not every number under a key is finite."""
    if not finite(value):
        yield (key,), f"must be finite numbers, not {value}"


def finite(value: object) -> bool:
    """Return whether every number in a JSON-like value is finite."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)
