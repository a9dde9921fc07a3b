"""Stands in for pyscipopt."""

# ruff: noqa: N802  # the names are those of the original

import math
from typing import Any

from .terms import BOOK, Anything, Expr, Recorded, Var, expr, quicksum  # no fairtrial in a sandbox


class Pyscipopt:
    """A model of pyscipopt."""

    def __init__(self, *_: Any, **__: Any) -> None:
        BOOK.open()

    def addVar(self, name: str = "", vtype: str = "C", lb: Any = 0, ub: Any = None, obj: Any = 0, **_: Any) -> Var:
        return BOOK.add(name, lb, ub, vtype, obj)

    def addCons(self, relation: Any, *_: Any, **__: Any) -> None:
        BOOK.constrain(relation)

    def setObjective(self, goal: Any, sense: str = "minimize", **_: Any) -> None:
        BOOK.goal, BOOK.sense = expr(goal), "max" if str(sense).startswith("max") else "min"

    def setMinimize(self) -> None:
        BOOK.sense = "min"

    def setMaximize(self) -> None:
        BOOK.sense = "max"

    def optimize(self) -> None:
        raise Recorded

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("setParam", "hideOutput", "setRealParam", "setIntParam")):
            return Anything()
        raise AttributeError(f"pyscipopt's Model.{name} is not known here")


def _function(name: str) -> Any:
    return lambda value: Expr(f"{name}({expr(value).text})") if isinstance(value, Expr) else getattr(math, name)(value)


_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos")
NAMES = {"Model": Pyscipopt, "quicksum": quicksum, **{name: _function(name) for name in _FUNCTIONS}}
