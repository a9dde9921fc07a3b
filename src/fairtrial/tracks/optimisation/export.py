"""Problems as files: the text of a YAML file that reads back as the same problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from fairtrial.tracks.optimisation.formula import RESERVED
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Expression, OptimisationProblem, Square
from fairtrial.tracks.optimisation.text import joined, number, times

_SHORT = 6  # terms that are written out; longer sums become vectors and matrices
_NAME = "x"
_WIDTH = 110


def problem_yaml(problem: OptimisationProblem) -> str:
    """Return a problem as the text of a file."""
    writer = _ExpressionWriter(problem)
    document = {
        "id": problem.id,
        "family": problem.family,
        "sense": "min" if problem.sense == "minimise" else "max",
        "variables": _variables(problem),
        "objective": writer.expression(problem.objective),
        "constraints": writer.constraints(),
        "data": writer.data,
        "text": problem.text,
        "difficulty": problem.difficulty,
        "tolerance": None if problem.tolerance == 1e-6 else problem.tolerance,
        "bound": problem.floor,
        "variant_of": problem.variant_of,
    }
    return document_yaml({key: value for key, value in document.items() if value not in (None, "", [], {})})


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


def _variables(problem: OptimisationProblem) -> list[dict[str, Any]]:
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


def _groups(problem: OptimisationProblem) -> list[tuple[str, list[int], bool]]:
    whole = set(problem.integers)
    runs: list[list[int]] = []
    for i in range(problem.n):
        if runs and (runs[-1][-1] in whole) == (i in whole):
            runs[-1].append(i)
        else:
            runs.append([i])
    return [(_NAME if len(runs) == 1 else f"{_NAME}{place}", run, False) for place, run in enumerate(runs)]


def _named_groups(problem: OptimisationProblem) -> list[tuple[str, list[int], bool]]:
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


class _ExpressionWriter:
    """Writes expressions; long linear parts and their numbers go into `data`."""

    def __init__(self, problem: OptimisationProblem) -> None:
        self._problem = problem
        self.data: dict[str, Any] = {}
        entries = _variables(problem)
        self._x = [name for entry in entries for name in _entries(entry)].__getitem__  # a name by its place
        self._vector = entries[0]["name"] if len(entries) == 1 else ""  # if all variables are one

    def constraints(self) -> list[str]:
        """Return the constraints as texts."""
        return [
            f"{self.expression(row.body, prefix=f'a{place}')} {row.relation} {number(row.bound)}"
            for place, row in enumerate(self._problem.constraints, 1)
        ]

    def expression(self, body: Expression, prefix: str = "c") -> str:
        """Return an expression as text."""
        terms = [number(body.constant)] if body.constant else []
        terms += self._linear(body.linear, prefix)
        terms += [
            times(q, f"{self._x(i)}**2" if i == j else f"{self._x(i)}*{self._x(j)}") for i, j, q in body.quadratic
        ]
        terms += [times(square.weight, f"({self._inside(square)})**2") for square in body.squares]
        for monomial in body.monomials:
            powers = (self._x(i) if p == 1 else f"{self._x(i)}**{p}" for i, p in monomial.powers)
            terms.append(times(monomial.weight, "*".join(powers)))
        for wave in body.waves:
            inside = [times(wave.rate, self._x(wave.variable)), *([number(wave.shift)] if wave.shift else [])]
            terms.append(times(wave.weight, f"cos({joined(inside)})"))
        terms += [times(formula.weight, formula.written(self._x)) for formula in body.formulas]
        return joined(terms)

    def _linear(self, linear: Sequence[tuple[int, float]], prefix: str) -> list[str]:
        whole = [i for i, _ in linear] == list(range(self._problem.n))
        if len(linear) <= _SHORT or not whole or not self._vector:
            return [times(c, self._x(i)) for i, c in linear]
        if len({c for _, c in linear}) == 1:
            return [times(linear[0][1], f"sum({self._vector})")]
        name = prefix if prefix != self._vector else f"{prefix}_"
        self.data[name] = [_number(c) for _, c in linear]
        return [f"{name} @ {self._vector}"]

    def _inside(self, square: Square) -> str:
        terms = [times(c, self._x(i)) for i, c in square.linear]
        return joined([*terms, *([number(square.constant)] if square.constant else [])])


def _entries(entry: dict[str, Any]) -> list[str]:
    return [f"{entry['name']}[{i}]" for i in range(entry["size"])] if "size" in entry else [entry["name"]]
