"""The mathematics of an instance, without its story: numbers by name, and expressions over them.

Every number belongs to things (a weight to an item, a cost to a warehouse and a customer). So the things can be put in
another order, and what is solved stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from fairtrial.tracks.optimisation.draws import Draws

Order = Literal["any", "first stays", "circle", "fixed"]  # in which ways things can be put in another order


class Things(msgspec.Struct, frozen=True):
    """Things of one kind: how many, and in which ways their order can be changed."""

    count: int
    order: Order = "any"


class Numbers(msgspec.Struct, frozen=True):
    """A number, a vector or a matrix, with the things that its entries belong to."""

    values: Any
    of: tuple[str, ...] = ()

    def reordered(self, orders: Mapping[str, Sequence[int]]) -> Numbers:
        """Return the same numbers for things in another order."""
        if not self.of:
            return self
        rows = [self.values[i] for i in orders[self.of[0]]]
        if len(self.of) == 2:
            rows = [[row[j] for j in orders[self.of[1]]] for row in rows]
        return Numbers(rows, self.of)


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be chosen, for each of some things."""

    of: tuple[str, ...] = ()
    lower: float | None = 0
    upper: float | None = None
    integer: bool = False


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """An instance: expressions use the names of data and variables, as in a problem file."""

    things: dict[str, Things]
    data: dict[str, Numbers]
    variables: dict[str, Variable]
    objective: str
    constraints: list[str]
    sense: Literal["min", "max"] = "min"
    shown: dict[str, Any] = {}  # further numbers for the story

    def reordered(self, draws: Draws) -> Model:
        """Return the same problem with its things in another order."""
        orders = {name: _order(things, draws) for name, things in self.things.items()}
        data = {name: numbers.reordered(orders) for name, numbers in self.data.items()}
        return msgspec.structs.replace(self, data=data)

    def sizes(self, variable: Variable) -> list[int]:
        """Return the shape of a variable."""
        return [self.things[name].count for name in variable.of]


def _order(things: Things, draws: Draws) -> list[int]:
    numbers = list(range(things.count))
    if things.order == "any":
        return draws.shuffled(numbers)
    if things.order == "first stays":
        return [0, *draws.shuffled(numbers[1:])]
    first = draws.whole(0, things.count - 1) if things.order == "circle" else 0
    return numbers[first:] + numbers[:first]
