"""Problems as files: the text of a YAML file that reads back as the same problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from fairtrial.tracks.optimisation.formula import RESERVED
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Expression, Problem, Square

_SHORT = 6  # terms that are written out; longer sums become vectors and matrices
_NAME = "x"
_WIDTH = 110


def problem_yaml(problem: Problem) -> str:
    """Return a problem as the text of a file."""
    writer = _Writer(problem)
    document: dict[str, Any] = {
        "id": problem.id,
        "family": problem.family,
        "sense": "min" if problem.sense == "minimise" else "max",
        "variables": _variables(problem),
        "objective": writer.expression(problem.objective),
        "constraints": writer.constraints(),
    }
    if writer.data:
        document["data"] = writer.data
    if problem.text:
        document["text"] = problem.text
    if problem.difficulty:
        document["difficulty"] = problem.difficulty
    if problem.tolerance != 1e-6:
        document["tolerance"] = problem.tolerance
    if problem.floor is not None:
        document["bound"] = problem.floor
    if problem.variant_of:
        document["variant_of"] = problem.variant_of
    if not document["constraints"]:
        del document["constraints"]
    return document_yaml(document)


def document_yaml(document: dict[str, Any]) -> str:
    """Return the document of a problem as the text of a file."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Writes lists of numbers and variables on one line, and floats so that YAML reads them as numbers."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    flat = all(isinstance(item, int | float) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flat)


def _represent_dict(dumper: yaml.SafeDumper, items: dict[str, Any]) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", items.items(), flow_style="name" in items)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    long = len(text) > _WIDTH and " " in text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=">" if long else None)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(dict, _represent_dict)


def _variables(problem: Problem) -> list[dict[str, Any]]:
    """Return the variables under their own names if these can be read back, else as one vector for each kind."""
    whole = set(problem.integers)
    return [
        {
            "name": name,
            **({} if scalar else {"size": len(run)}),
            **_bound("lower", [problem.lower[i] for i in run]),
            **_bound("upper", [problem.upper[i] for i in run]),
            **({"integer": True} if run[0] in whole else {}),
        }
        for name, run, scalar in _named_groups(problem) or _groups(problem)
    ]


def _groups(problem: Problem) -> list[tuple[str, list[int], bool]]:
    whole = set(problem.integers)
    runs: list[list[int]] = []
    for i in range(problem.n):
        if runs and (runs[-1][-1] in whole) == (i in whole):
            runs[-1].append(i)
        else:
            runs.append([i])
    return [(_NAME if len(runs) == 1 else f"{_NAME}{number}", run, False) for number, run in enumerate(runs)]


def _named_groups(problem: Problem) -> list[tuple[str, list[int], bool]]:
    """Return names with their variables; empty if a file cannot have such a name, or the numbers are not in order."""
    whole = set(problem.integers)
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(problem.names):
        base, bracket, index = name.partition("[")
        run = groups.setdefault(base, [])
        in_order = index == f"{len(run)}]" and (not run or run[-1] == i - 1) if bracket else not run
        if not in_order or not base.isidentifier() or base in RESERVED or (run and (run[0] in whole) != (i in whole)):
            return []
        run.append(i)
    scalars = {name for name in problem.names if "[" not in name}
    return [(base, run, base in scalars) for base, run in groups.items()]


def _bound(key: str, values: Sequence[float]) -> dict[str, Any]:
    if all(abs(value) >= UNBOUNDED for value in values):
        return {}
    return {key: _number(values[0]) if len(set(values)) == 1 else [_number(value) for value in values]}


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


class _Writer:
    """Writes expressions; long linear parts and their numbers go into `data`."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.data: dict[str, Any] = {}
        entries = _variables(problem)
        self._names = [name for entry in entries for name in _entries(entry)]
        self._vector = entries[0]["name"] if len(entries) == 1 else ""  # if all variables are one

    def constraints(self) -> list[str]:
        """Return the constraints as texts."""
        rows = self._problem.constraints
        return [
            f"{self.expression(row.body, prefix=f'a{number}')} {row.relation} {_text(row.bound)}"
            for number, row in enumerate(rows, 1)
        ]

    def expression(self, body: Expression, prefix: str = "c") -> str:
        """Return an expression as text."""
        terms = [_text(body.constant)] if body.constant else []
        terms += self._linear(body.linear, prefix)
        terms += [
            _times(q, f"{self._x(i)}**2" if i == j else f"{self._x(i)}*{self._x(j)}") for i, j, q in body.quadratic
        ]
        terms += [_times(square.weight, f"({self._inside(square)})**2") for square in body.squares]
        for monomial in body.monomials:
            powers = (self._x(i) if p == 1 else f"{self._x(i)}**{p}" for i, p in monomial.powers)
            terms.append(_times(monomial.weight, "*".join(powers)))
        for wave in body.waves:
            shift = f" + {_text(wave.shift)}" if wave.shift else ""
            inside = f"{_times(wave.rate, self._x(wave.variable))}{shift}".replace(" + -", " - ")
            terms.append(_times(wave.weight, f"cos({inside})"))
        for formula in body.formulas:
            renamed = formula.text
            for i in sorted(formula.variables, reverse=True):
                renamed = renamed.replace(f"x[{i}]", f"\0{i}\0")
            for i in formula.variables:
                renamed = renamed.replace(f"\0{i}\0", self._x(i))
            terms.append(_times(formula.weight, renamed))
        return " + ".join(terms).replace(" + -", " - ") or "0"

    def _x(self, i: int) -> str:
        return self._names[i]

    def _linear(self, linear: Sequence[tuple[int, float]], prefix: str) -> list[str]:
        whole = [i for i, _ in linear] == list(range(self._problem.n))
        if len(linear) <= _SHORT or not whole or not self._vector:
            return [_times(c, self._x(i)) for i, c in linear]
        if len({c for _, c in linear}) == 1:
            return [_times(linear[0][1], f"sum({self._vector})")]
        name = prefix if prefix != self._vector else f"{prefix}_"
        self.data[name] = [_number(c) for _, c in linear]
        return [f"{name} @ {self._vector}"]

    def _inside(self, square: Square) -> str:
        terms = [_times(c, self._x(i)) for i, c in square.linear]
        terms += [_text(square.constant)] if square.constant else []
        return " + ".join(terms).replace(" + -", " - ")


def _entries(entry: dict[str, Any]) -> list[str]:
    return [f"{entry['name']}[{i}]" for i in range(entry["size"])] if "size" in entry else [entry["name"]]


def _text(value: float) -> str:
    return repr(_number(value))


def _times(weight: float, what: str) -> str:
    if abs(weight) == 1:
        return what if weight > 0 else f"-{what}"
    return f"{_text(weight)}*{what}"
