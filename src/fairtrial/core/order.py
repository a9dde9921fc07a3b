"""The order in which the cases of a run are asked."""

from __future__ import annotations

import random
from array import array


def case_order(key: str | None, count: int) -> array[int]:
    """Return the positions of all cases in a random order that is always the same for a key.

    A run that stops early then has a sample of its cases, whatever the suite is sorted by. Without a key, they are in
    the suite's order. An array, because there may be millions.
    """
    order = array("q", range(count))
    if key is not None:
        random.Random(key).shuffle(order)
    return order
