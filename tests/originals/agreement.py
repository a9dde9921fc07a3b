"""Where a number of ours meets the original's: every comparison is made, and counted, here."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

_counts: Counter[str] = Counter()


def compared() -> int:
    """Return how many numbers and texts were compared so far."""
    return _counts.total()


def agree(name: str, ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Fail unless two values are the same; numbers within a tolerance, relative or absolute; lists and dicts item by
    item."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), f"{name}: {sorted(ours)} here, {sorted(theirs)} in the original"
        for key, value in theirs.items():
            agree(f"{name}.{key}", ours[key], value, tolerance)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), f"{name}: {len(ours)} values here, {len(theirs)} in the original"
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            agree(f"{name}[{place}]", one, other, tolerance)
    else:
        _counts["all"] += 1
        assert _same(ours, theirs, tolerance), f"{name}: {ours!r} here, {theirs!r} in the original"


def _same(ours: Any, theirs: Any, tolerance: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (ours, theirs))
    if not numbers:
        return bool(ours == theirs)
    return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
