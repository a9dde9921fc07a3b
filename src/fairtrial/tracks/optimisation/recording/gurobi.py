"""Stands in for gurobipy, which needs a licence."""

# ruff: noqa: N802, N815  # the names are those of the original

import itertools
from typing import Any

from .terms import BOOK, Anything, Expr, Recorded, Relation, Var, expr, quicksum  # no fairtrial in a sandbox


class Tupledict(dict):  # type: ignore[type-arg]
    """Variables by their indices, as gurobipy has them."""

    def select(self, *pattern: Any) -> list[Any]:
        if not pattern:
            return list(self.values())
        return [value for key, value in self.items() if _matches(key, pattern)]

    def sum(self, *pattern: Any) -> Expr:
        return quicksum(self.select(*pattern))

    def prod(self, factors: Any, *pattern: Any) -> Expr:
        return quicksum(factors[key] * value for key, value in self.items() if not pattern or _matches(key, pattern))


def _matches(key: Any, pattern: tuple[Any, ...]) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    wanted = [one if isinstance(one, (list, tuple, set)) else None if one == "*" else [one] for one in pattern]
    return all(one is None or part in one for part, one in zip(parts, wanted, strict=False))


def _keys(indices: tuple[Any, ...]) -> list[Any]:
    axes = [range(one) if isinstance(one, int) else list(one) for one in indices]
    return list(axes[0]) if len(axes) == 1 else list(itertools.product(*axes))


def _of(value: Any, key: Any, place: int) -> Any:
    """Return a bound that is given for all variables, by key or by place."""
    if isinstance(value, dict):
        return value[key]
    return value[place] if isinstance(value, (list, tuple)) else value


class Gurobi:
    """A model of gurobipy."""

    def __init__(self, *_: Any, **__: Any) -> None:
        BOOK.open()
        self.Params = self.params = Anything()

    def __enter__(self) -> "Gurobi":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __setattr__(self, name: str, value: Any) -> None:
        if name.lower() == "modelsense":
            BOOK.sense = "max" if value == -1 else "min"
        elif name.lower() != "params":
            raise AttributeError(f"a change of the model's {name}")
        object.__setattr__(self, name, value)

    def addVar(
        self, lb: Any = 0, ub: Any = None, obj: Any = 0, vtype: Any = "C", name: str = "x", column: Any = None
    ) -> Var:
        return BOOK.add(name, lb, ub, vtype, obj)

    def addVars(
        self, *indices: Any, lb: Any = 0, ub: Any = None, obj: Any = 0, vtype: Any = "C", name: Any = "x"
    ) -> Tupledict:
        made = Tupledict()
        for place, key in enumerate(_keys(indices)):
            label = f"{name}_{'_'.join(map(str, key if isinstance(key, tuple) else (key,)))}"
            made[key] = self.addVar(
                _of(lb, key, place), _of(ub, key, place), _of(obj, key, place), _of(vtype, key, place), label
            )
        return made

    def addConstr(self, relation: Any, sense: Any = None, rhs: Any = None, name: str = "") -> None:
        if not isinstance(relation, Relation) and sense is not None:
            left = expr(relation)
            relation = left <= rhs if sense in ("<", "<=") else left >= rhs if sense in (">", ">=") else left == rhs
        BOOK.constrain(relation)

    addLConstr = addQConstr = addConstr

    def addConstrs(self, relations: Any, name: str = "") -> None:
        for relation in relations:
            BOOK.constrain(relation)

    def setObjective(self, goal: Any, sense: Any = None) -> None:
        BOOK.goal = expr(goal)
        if sense is not None:
            BOOK.sense = "max" if sense == -1 else "min"

    def setParam(self, *_: Any) -> None:
        pass

    def update(self) -> None:
        pass

    def write(self, *_: Any) -> None:
        pass

    def optimize(self, *_: Any) -> None:
        raise Recorded


class _Constants(type):
    def __getattr__(cls, name: str) -> Any:
        return name


class GRB(metaclass=_Constants):
    """Constants of gurobipy; those that are not listed only have to exist."""

    MINIMIZE, MAXIMIZE, INFINITY = 1, -1, 1e100
    CONTINUOUS, INTEGER, BINARY = "C", "I", "B"
    LESS_EQUAL, GREATER_EQUAL, EQUAL = "<", ">", "="
    Param = Attr = Callback = Anything()


NAMES = {
    "Model": Gurobi,
    "GRB": GRB,
    "quicksum": quicksum,
    "tupledict": Tupledict,
    "tuplelist": list,
    "Env": Anything(),
    "setParam": lambda *_: None,
    "GurobiError": Exception,
}
