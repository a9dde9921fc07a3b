"""Amounts that people and programs give: nothing can be compared with `nan`, and nothing reaches `inf`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import clipped

MOST_REPEATS = 1_000_000  # answers to one case: more would never end
MOST_RUNS = 10_000  # of a suite in sequence, or of a judge on the same samples


def check_amount(name: str, value: float | None, *, positive: bool = False) -> None:
    """Raise if an amount is given that is negative or not a finite number; 0 is allowed unless it must be positive."""
    if value is None or (math.isfinite(value) and (value > 0 if positive else value >= 0)):
        return
    raise FairtrialError(f"`{name}` must be a finite number {'above 0' if positive else 'from 0 on'}, not {value:g}")


def check_runs(runs: int) -> None:
    """Raise if something is to be run less than once, or so often that it would never end."""
    if not 1 <= runs <= MOST_RUNS:
        raise FairtrialError(f"`runs` must be from 1 to {MOST_RUNS:,}, not {clipped(f'{runs:,}', 40)}")


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
