"""Shared definitions for running and for reading runs that may stop early."""

from __future__ import annotations

import random

FEWEST = 20  # complete cases, so that a run is not decided by a handful of lucky ones


def case_order(run_id: str, count: int) -> list[int]:
    """Return the positions of all cases in a random order that is always the same for a run."""
    order = list(range(count))
    random.Random(run_id).shuffle(order)
    return order
