"""What making and reading a run that may end early must agree on."""

from __future__ import annotations

import random

FEWEST = 50  # complete cases: the sequence is asymptotic, and holds from about there on


def case_order(run_id: str, count: int) -> list[int]:
    """The positions of all cases in an order that nobody chose; the same whenever a run is looked at."""
    order = list(range(count))
    random.Random(run_id).shuffle(order)
    return order
