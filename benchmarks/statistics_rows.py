"""A table of simulated experiments: its rows, and what bar each of them has."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.regimes import Rng

MOST_FALSE, LEAST_HELD = 0.06, 0.93
ALPHA = 0.05


class Row(NamedTuple):
    """One regime: what was found, and beside it what another method would have said there."""

    what: str
    found: float
    count: int
    bar: float | None  # the most (of false claims) or the least (of intervals that hold) that is promised
    least: bool = False
    beside: str = ""

    @property
    def held(self) -> bool:
        """Inside its bar, give or take twice what the simulation itself may be off by."""
        if self.bar is None:
            return True
        slack = 2 * (self.bar * (1 - self.bar) / self.count) ** 0.5
        return self.found >= self.bar - slack if self.least else self.found <= self.bar + slack


class Part(NamedTuple):
    """A table, with what the product does in these regimes."""

    title: str
    says: str
    rows: list[Row]


def share(rng: Rng, count: int, experiment: Callable[[Rng], bool]) -> float:
    """How often it happens."""
    return float(np.mean([experiment(rng) for _ in range(count)]))
