"""The position of a trial in its plan."""

from __future__ import annotations

from typing import Any, NamedTuple

COLUMNS = ("case_position", "arm_position", "repeat")  # the column names of a place


class Place(NamedTuple):
    """A trial's position: which case, which arm, which repeat."""

    case: int
    arm: int
    repeat: int


def place_of(row: Any) -> Place:
    """Return the place of a row (a mapping)."""
    return Place(row["case_position"], row["arm_position"], row["repeat"])
