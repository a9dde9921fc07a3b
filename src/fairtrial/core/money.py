"""What calls cost: what is known of it, and what a budget counts where nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one or more calls in USD.

    `known` is what can be said for certain, `charged` what a budget counts: the same, and for every call whose cost
    nobody knows the most that it can have been. `unknown` is the number of such calls.
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
        """The cost, or None where it is not known to the last call."""
        return None if self.unknown else self.known


def total(costs: Iterable[Cost]) -> Cost:
    """The cost of all of them."""
    return sum(costs, Cost())
