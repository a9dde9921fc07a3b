"""What is recorded: expressions and constraints as texts, variables with their bounds."""

import itertools
import math
import re
from typing import Any

_FAR = 1e20
_KINDS = {"C": "", "CONTINUOUS": "", "I": "integer", "INTEGER": "integer", "B": "binary", "BINARY": "binary"}


class Recorded(BaseException):
    """The model is complete: the program wants it solved."""


class Expr:
    """An expression as text; `level` says what holds it together: 0 a sum, 1 a product, 2 a single thing."""

    __array_ufunc__ = None  # so that NumPy's numbers leave operations to us

    def __init__(self, text: str, level: int = 2) -> None:
        self.text, self.level = text, level

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"

    def __add__(self, other: Any) -> "Expr":
        return Expr(f"{self.text} + {expr(other).text}", 0)

    def __radd__(self, other: Any) -> "Expr":
        return self if isinstance(other, (int, float)) and other == 0 else Expr(f"{expr(other).text} + {self.text}", 0)

    def __sub__(self, other: Any) -> "Expr":
        return Expr(f"{self.text} - {expr(other).at(1)}", 0)

    def __rsub__(self, other: Any) -> "Expr":
        return Expr(f"{expr(other).text} - {self.at(1)}", 0)

    def __mul__(self, other: Any) -> "Expr":
        return Expr(f"{self.at(1)}*{expr(other).at(1)}", 1)

    def __rmul__(self, other: Any) -> "Expr":
        return Expr(f"{expr(other).at(1)}*{self.at(1)}", 1)

    def __truediv__(self, other: Any) -> "Expr":
        return Expr(f"{self.at(1)}/{expr(other).at(2)}", 1)

    def __rtruediv__(self, other: Any) -> "Expr":
        return Expr(f"{expr(other).at(1)}/{self.at(2)}", 1)

    def __pow__(self, other: Any) -> "Expr":
        return Expr(f"{self.at(2)}**{expr(other).at(2)}", 1)

    def __neg__(self) -> "Expr":
        return Expr(f"-{self.at(1)}", 0)

    def __pos__(self) -> "Expr":
        return self

    def __abs__(self) -> "Expr":
        return Expr(f"abs({self.text})")

    def __le__(self, other: Any) -> "Relation":
        return Relation(f"{self.text} <= {expr(other).text}")

    def __ge__(self, other: Any) -> "Relation":
        return Relation(f"{self.text} >= {expr(other).text}")

    def __eq__(self, other: Any) -> "Relation":  # type: ignore[override]
        return Relation(f"{self.text} == {expr(other).text}")

    __hash__ = object.__hash__


class Relation:
    """A constraint as text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __le__(self, other: Any) -> "Relation":
        return Relation(f"{self.text} <= {expr(other).text}")

    def __ge__(self, other: Any) -> "Relation":
        return Relation(f"{self.text} >= {expr(other).text}")

    def __bool__(self) -> bool:
        raise TypeError("a comparison of variables is neither true nor false")


def expr(value: Any) -> Expr:
    """Return a number or an expression as an expression."""
    if isinstance(value, Expr):
        return value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("an infinite number in an expression")
    text = repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return Expr(text, 0 if number < 0 else 2)


def quicksum(items: Any) -> Expr:
    """Return a sum."""
    parts = [expr(item).text for item in items]
    return Expr(" + ".join(parts) or "0", 0)


class Var(Expr):
    """A variable with its bounds and kind, which a program may change later.

    Any other change that a program makes to it could change the model, so that it is an error rather than ignored.
    """

    _CHANGED = {"lb": "lb", "ub": "ub", "vtype": "kind", "lowbound": "lb", "upbound": "ub", "cat": "kind"}
    _HARMLESS = ("text", "level", "name", "kind", "start", "branchpriority")

    def __init__(self, name: str, low: Any, high: Any, kind: Any) -> None:
        super().__init__(name)
        self.name, self.lb, self.ub, self.kind = name, low, high, kind

    def __setattr__(self, name: str, value: Any) -> None:
        plain = self._CHANGED.get(name.lower(), name)
        if plain not in ("lb", "ub") and plain.lower() not in self._HARMLESS:
            raise AttributeError(f"a change of the variable's {name}")
        object.__setattr__(self, plain, value)

    def entry(self) -> dict[str, Any]:
        """Return the variable as it is written in a problem file."""
        if str(self.kind).upper() not in _KINDS:
            raise ValueError(f"variables of the kind {self.kind}")
        kind = _KINDS[str(self.kind).upper()]
        low, high = self.lb, self.ub
        if kind == "binary":
            low, high = max(0.0, float(low or 0)), min(1.0, 1.0 if high is None else float(high))
        bounds = {key: float(one) for key, one in (("lower", low), ("upper", high)) if one is not None}
        entry = {"name": self.name, **{key: one for key, one in bounds.items() if abs(one) < _FAR}}
        return {**entry, "integer": True} if kind else entry


class Book:
    """Everything that was recorded. Without a name or with one that is taken, a variable gets a name of its own."""

    def __init__(self) -> None:
        self.variables: dict[str, Var] = {}
        self.rows: list[str] = []
        self.goal: Expr | None = None
        self.sense = "min"
        self._models = 0

    def open(self) -> None:
        """Begin a model; there can be only one."""
        self._models += 1
        if self._models > 1:
            raise ValueError("more than one model")

    def add(self, name: str, low: Any, high: Any, kind: Any, weight: Any = 0) -> Var:
        """Add a variable, with its weight in the objective."""
        plain = re.sub(r"\W+", "_", str(name)).strip("_") or "x"
        plain = f"v_{plain}" if not plain.isidentifier() or len(plain) < 2 or plain in _TAKEN else plain
        plain = next(
            one
            for one in itertools.chain([plain], (f"{plain}_{k}" for k in itertools.count(2)))
            if one not in self.variables
        )
        variable = Var(plain, low, high, kind)
        self.variables[plain] = variable
        if weight:
            self.goal = weight * variable if self.goal is None else self.goal + weight * variable
        return variable

    def constrain(self, relation: Any) -> None:
        """Add a constraint."""
        if not isinstance(relation, Relation):
            raise TypeError(f"a constraint without variables: {relation!r}")
        self.rows.append(relation.text)

    def document(self) -> dict[str, Any]:
        """Return the document of a problem file; variables that nothing depends on are left out."""
        goal = (self.goal or expr(0)).text
        used = set(re.findall(r"[A-Za-z_]\w*", " ".join([goal, *self.rows])))
        variables = [one.entry() for name, one in self.variables.items() if name in used]
        return {"sense": self.sense, "variables": variables, "objective": goal, "constraints": self.rows}


_TAKEN = {*"sum prod len range exp log sqrt sin cos abs pi min max for if in".split()}  # noqa: SIM905  # shorter
BOOK = Book()


class Anything:
    """Settings that do not matter for the model."""

    def __getattr__(self, name: str) -> Any:
        return Anything()

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> Any:
        return Anything()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass
