"""Stands in for PuLP."""

# ruff: noqa: N802, N803  # the names are those of the original

from typing import Any

from .terms import BOOK, Anything, Recorded, Relation, Var, expr, quicksum  # no fairtrial in a sandbox


class PulpVariable(Var):
    """A variable of PuLP."""

    def __new__(cls, name: str, lowBound: Any = None, upBound: Any = None, cat: str = "Continuous", **_: Any) -> Any:
        return BOOK.add(name, lowBound, upBound, cat)

    @classmethod
    def dicts(cls, name: str, indices: Any, lowBound: Any = None, upBound: Any = None, cat: str = "Continuous") -> Any:
        axes = indices if isinstance(indices, tuple) else (indices,)
        if len(axes) == 1:
            return {key: cls(f"{name}_{key}", lowBound, upBound, cat) for key in axes[0]}
        return {key: cls.dicts(f"{name}_{key}", axes[1:], lowBound, upBound, cat) for key in axes[0]}


class Pulp:
    """A problem of PuLP: `+=` adds the objective or a constraint."""

    def __init__(self, name: str = "", sense: int = 1) -> None:
        BOOK.open()
        BOOK.sense = "max" if sense == -1 else "min"

    def __iadd__(self, other: Any) -> "Pulp":
        one = other[0] if isinstance(other, tuple) else other
        if isinstance(one, Relation):
            BOOK.constrain(one)
        else:
            BOOK.goal = expr(one)
        return self

    def addConstraint(self, relation: Any, *_: Any) -> None:
        BOOK.constrain(relation)

    def setObjective(self, goal: Any) -> None:
        BOOK.goal = expr(goal)

    def solve(self, *_: Any, **__: Any) -> None:
        raise Recorded


NAMES = {
    "LpProblem": Pulp,
    "LpVariable": PulpVariable,
    "lpSum": quicksum,
    "LpMaximize": -1,
    "LpMinimize": 1,
    "LpContinuous": "Continuous",
    "LpInteger": "Integer",
    "LpBinary": "Binary",
    "PULP_CBC_CMD": Anything(),
    "GLPK": Anything(),
    "LpStatus": Anything(),
    "value": lambda one: one,
}
