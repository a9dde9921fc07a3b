"""What making and reading a run that may end early must agree on."""

from __future__ import annotations

import random

FEWEST = 20  # complete cases, so that a handful of lucky ones is not all that anybody asked


def case_order(run_id: str, count: int) -> list[int]:
    """The positions of all cases in an order that nobody chose; the same whenever a run is looked at."""
    order = list(range(count))
    random.Random(run_id).shuffle(order)
    return order
