"""The cost of calls: the known part, and what a budget charges for calls of unknown cost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one or more calls in USD.

    `known` is the certain part. `charged` is what counts against a budget: the known cost, plus an upper bound for
    every call whose cost is unknown. `unknown` is the number of such calls.
    """

    known: float = 0.0
    charged: float = 0.0
    unknown: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            known=self.known + other.known,
            charged=self.charged + other.charged,
            unknown=self.unknown + other.unknown,
        )

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            known=self.known - other.known,
            charged=self.charged - other.charged,
            unknown=self.unknown - other.unknown,
        )

    @property
    def usd(self) -> float | None:
        """The cost, or None if the cost of any call is unknown."""
        return None if self.unknown else self.known


# What stands for an amount of which nobody knows anything: it is on record, and nothing else.
UNKNOWN_USD = 1e-12
_SURELY_KNOWN = 1e-7  # more than all calls in flight together, if nothing is known of any


def at_most(usd: float) -> Cost:
    """Return the cost of calls that were lost and may have cost this much; nothing if there was nothing at risk."""
    return Cost(charged=usd if usd > _SURELY_KNOWN else 0.0, unknown=int(usd > 0))


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of the costs."""
    return sum(costs, Cost())
