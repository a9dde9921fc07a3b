"""Scoring by a lower and an upper limit."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.core.score import Score


def bound_problems(name: str, low: float | None, high: float | None) -> Iterator[str]:
    """Yield what is wrong with the limits of a scorer."""
    if low is None and high is None:
        yield f"a {name} scorer needs `min`, `max` or both"
    elif low is not None and high is not None and low > high:
        yield f"`min` ({low:g}) is above `max` ({high:g}), so no answer can be right"


def within(value: float, low: float | None, high: float | None, shown: str) -> Score:
    """Return 1 for a value within the limits, else 0."""
    if low is not None and value < low:
        return Score(value=0.0, raw=0.0, confidence=1.0, notes=f"{shown}, below the minimum of {low:g}")
    if high is not None and value > high:
        return Score(value=0.0, raw=0.0, confidence=1.0, notes=f"{shown}, above the maximum of {high:g}")
    return Score(value=1.0, raw=1.0, confidence=1.0, notes=shown)
