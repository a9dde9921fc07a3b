"""Problem files: from YAML or JSON to a checked optimisation problem, with the line of every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from fairtrial.config.case_document import Keys
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.options import Problems, read
from fairtrial.core.trust import within
from fairtrial.core.variables import Variables
from fairtrial.text.printable import name_problem
from fairtrial.tracks.optimisation.algebra import Sum, add, as_expression, each_sum, functions
from fairtrial.tracks.optimisation.answer import read_answer
from fairtrial.tracks.optimisation.arrays import FormulaError, limited_work
from fairtrial.tracks.optimisation.formula import RESERVED, Interpreter
from fairtrial.tracks.optimisation.matrix_file import MatrixError, read_numbers
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Constraint, Expression, OptimisationProblem
from fairtrial.tracks.optimisation.structure import is_convex
from fairtrial.tracks.optimisation.text import problem_text

_MAX_VARIABLES = 10_000
_MAX_CONSTRAINTS = 20_000
_MAX_MISTAKES = 50
_SENSES = {"min": "minimise", "max": "maximise"}


class VariableEntry(Keys, frozen=True, kw_only=True):
    """A variable, or with `size` a vector or matrix of them; without a bound it has none."""

    name: str
    size: Annotated[int, Meta(ge=1)] | list[Annotated[int, Meta(ge=1)]] | None = None
    lower: float | list[float] | None = None
    upper: float | list[float] | None = None
    integer: bool = False


class ProblemDocument(Keys, frozen=True, kw_only=True):
    """An optimisation problem: what to choose, what to minimise or maximise, and what must hold."""

    variables: Annotated[list[VariableEntry], Meta(min_length=1)]
    objective: str | float
    sense: Literal["min", "max", "minimise", "maximise", "minimize", "maximize"] = "min"
    id: Annotated[str, Meta(description="Its name in results; by default, that of the file.")] = ""
    data: Annotated[dict[str, Any], Meta(description="Numbers, vectors and matrices; `{file: A.csv}` reads one.")] = {}
    constraints: list[str] = []
    text: Annotated[str, Meta(description="What is asked; made from the rest if missing.")] = ""
    difficulty: Literal["easy", "medium", "hard"] | None = None
    tolerance: Annotated[float, Meta(gt=0, description="The largest violation of a feasible answer.")] = 1e-6
    family: Annotated[str, Meta(description="Problems of one family are one cluster in comparisons.")] = ""
    variant_of: Annotated[
        str, Meta(description="The id of the problem that this one is another wording of; both are one group.")
    ] = ""
    bound: Annotated[float | None, Meta(description="A bound of the objective that is known by construction.")] = None


def read_problem(path: Path) -> OptimisationProblem:
    """Return the problem in a YAML or JSON file; raise ProblemsError with all its mistakes."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise FairtrialError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise FairtrialError(f"{path} is not a UTF-8 text file") from None
    except OSError as error:
        raise FairtrialError(f"{path} cannot be read: {error.strerror}") from None
    name = path.resolve().parent.name if path.stem == "problem" else path.stem  # INSTANCE/problem.yaml
    return parse_problem(text, file=str(path), folder=path.parent, default_id=name)


def parse_problem(
    text: str, *, file: str = "problem", folder: Path | None = None, default_id: str = ""
) -> OptimisationProblem:
    """Return the problem in a text."""
    source = SuiteSource(text, file, Variables({}))
    faults: Problems = []
    document = read(ProblemDocument, source.value, faults)
    for key, message in faults:
        source.problem(key, message)
    problem = None
    if document is not None:
        with limited_work():
            problem = _DocumentReader(source, document, folder or Path()).problem(default_id)
    if source.problems or problem is None:
        raise ProblemsError(sorted(source.problems, key=lambda mistake: mistake.line)[:_MAX_MISTAKES])
    return problem


class _DocumentReader:
    """Reads one document; what is wrong goes to `source.problems`."""

    def __init__(self, source: SuiteSource, document: ProblemDocument, folder: Path) -> None:
        self._source, self._document, self._folder = source, document, folder
        self._names: list[str] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._integers: list[int] = []
        self._known: dict[str, Any] = {}

    def problem(self, default_id: str) -> OptimisationProblem | None:
        document = self._document
        for index, entry in enumerate(document.variables):
            self._add_variable(entry, index)
        for name, value in document.data.items():
            self._add_data(name, value)
        if len(self._names) > _MAX_VARIABLES:
            self._source.problem(("variables",), f"more than {_MAX_VARIABLES} variables")
            return None
        interpreter = Interpreter(self._known, functions(), add)
        objective = self._objective(interpreter)
        constraints = self._constraints(interpreter)
        self._find_unused(interpreter)
        name = document.id or default_id
        if fault := name_problem(name):
            self._source.problem(("id",), f"{name!r} {fault}")
        if self._source.problems or objective is None:
            return None
        problem = self._built(name, objective, constraints)
        if read_answer(problem_text(problem), problem.n).x is not None:
            self._source.problem(("text",), "contains a complete answer, which a model could repeat; leave it out")
        return problem

    def _built(self, name: str, objective: Expression, constraints: list[Constraint]) -> OptimisationProblem:
        document = self._document
        sense = _SENSES[document.sense[:3]]
        return OptimisationProblem(
            id=name,
            family=document.family or name,
            n=len(self._names),
            seed=0,
            sense=sense,  # type: ignore[arg-type]  # one of the two
            lower=tuple(self._lower),
            upper=tuple(self._upper),
            integers=tuple(self._integers),
            objective=objective,
            constraints=tuple(constraints),
            convex=is_convex(objective, sense, constraints, self._integers),
            floor=document.bound,
            names=tuple(self._names),
            text=document.text.strip(),
            level=document.difficulty or "",
            tolerance=document.tolerance,
            variant_of=document.variant_of,
        )

    def _add_variable(self, entry: VariableEntry, index: int) -> None:
        path = ("variables", index)
        if not self._is_free(entry.name, (*path, "name")):
            return
        shape = [] if entry.size is None else entry.size if isinstance(entry.size, list) else [entry.size]
        count = int(np.prod(shape)) if shape else 1
        if len(shape) > 2 or len(self._names) + count > _MAX_VARIABLES:
            limit = "a size is one number, or two" if len(shape) > 2 else f"more than {_MAX_VARIABLES} variables"
            self._source.problem((*path, "size"), limit)
            self._known[entry.name] = 0.0
            return
        first = len(self._names)
        sums = np.empty(count, dtype=object)
        sums[:] = [Sum.variable(first + place) for place in range(count)]
        self._known[entry.name] = sums.reshape(shape) if shape else sums[0]
        places = np.ndindex(*shape) if shape else [()]
        self._names += [f"{entry.name}[{', '.join(map(str, place))}]" if place else entry.name for place in places]
        lower = self._bounds(entry.lower, count, -UNBOUNDED, (*path, "lower"))
        upper = self._bounds(entry.upper, count, UNBOUNDED, (*path, "upper"))
        self._lower += lower
        self._upper += upper
        if any(low > high for low, high in zip(lower, upper, strict=True)):
            self._source.problem((*path, "upper"), f"is below `lower` of `{entry.name}`")
        if entry.integer:
            self._integers += range(first, first + count)

    def _is_free(self, name: str, path: tuple[str | int, ...]) -> bool:
        if not name.isidentifier():
            self._source.problem(path, f"`{name}` is not a name: use letters, digits and _, such as y or x_1")
        elif name in RESERVED:
            self._source.problem(path, f"`{name}` has a meaning in expressions; choose another name")
        elif name in self._known:
            self._source.problem(path, f"there are two `{name}`")
        else:
            return True
        return False

    def _bounds(self, given: float | list[float] | None, count: int, none: float, path: tuple[Any, ...]) -> list[float]:
        if isinstance(given, list):
            if len(given) == count:
                return given
            self._source.problem(path, f"has {len(given)} numbers, and there are {count} variables")
            return [none] * count
        return [none if given is None else float(given)] * count

    def _add_data(self, name: str, value: Any) -> None:
        path = ("data", name)
        if not self._is_free(name, path):
            return
        self._known[name] = 0.0  # so that it is not unknown as well as wrong
        if isinstance(value, dict):
            if list(value) != ["file"] or not isinstance(value["file"], str):
                self._source.problem(path, "must be a number, a vector, a matrix, or {file: A.csv}")
                return
            file = within(self._folder, value["file"])
            try:
                self._known[name] = read_numbers(file)
            except MatrixError as error:
                self._source.problem(path, f"{file}:{error.line}: {error}" if error.line else f"{file}: {error}")
            return
        try:
            numbers = np.asarray(value, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            numbers = np.asarray(np.nan)
        if not np.isfinite(numbers).all() or numbers.ndim > 2 or isinstance(value, bool) or not numbers.size:
            self._source.problem(path, "must be a number, a vector, or a matrix with rows of the same length")
        else:
            self._known[name] = float(numbers) if numbers.ndim == 0 else numbers

    def _objective(self, interpreter: Interpreter) -> Expression | None:
        try:
            return as_expression(Sum.of(interpreter.value(str(self._document.objective))))
        except (FormulaError, OverflowError) as error:
            self._source.problem(("objective",), str(error) or "a number is too large")
            return None

    def _constraints(self, interpreter: Interpreter) -> list[Constraint]:
        rows: list[Constraint] = []
        for index, text in enumerate(self._document.constraints):
            try:
                own = [row for sides in interpreter.relations(text) for row in _rows(*sides)]
            except (FormulaError, OverflowError) as error:
                self._source.problem(("constraints", index), str(error) or "a number is too large")
                continue
            if not own:
                self._source.problem(("constraints", index), "restricts nothing: it has no variables")
            rows += own
            if len(rows) > _MAX_CONSTRAINTS:
                self._source.problem(("constraints", index), f"more than {_MAX_CONSTRAINTS} constraints")
                break
        return rows

    def _find_unused(self, interpreter: Interpreter) -> None:
        """Report names that no expression uses: one of them is misspelt, or a part of the problem is missing."""
        if self._source.problems:
            return
        for index, entry in enumerate(self._document.variables):
            if entry.name not in interpreter.used:
                self._source.problem(("variables", index, "name"), f"`{entry.name}` is in no expression; leave it out")
        for name in self._document.data:
            if name not in interpreter.used:
                self._source.problem(("data", name), f"`{name}` is in no expression; leave it out")


def _rows(left: Any, relation: Any, right: Any) -> list[Constraint]:
    """Return a constraint for each entry of two sides; entries without variables that always hold are left out."""
    sides = [list(each_sum(left)), list(each_sum(right))]
    count = max(map(len, sides))
    if {len(side) for side in sides} - {1, count}:
        raise FormulaError(f"the sides have {len(sides[0])} and {len(sides[1])} entries")
    if np.ndim(left) and np.ndim(right) and np.shape(left) != np.shape(right):
        raise FormulaError("the sides have different shapes")
    full = [side * count if len(side) < count else side for side in sides]
    rows = []
    for one, two in zip(*full, strict=True):
        body = as_expression(one - two)
        if one.constant is not None and two.constant is None:  # 0 <= x is x >= 0
            body, row_relation = as_expression(two - one), {"<=": ">=", ">=": "<=", "==": "=="}[relation]
        else:
            row_relation = relation
        row = Constraint(
            body=msgspec.structs.replace(body, constant=0.0),
            relation=row_relation,  # type: ignore[arg-type]  # one of the three
            bound=-body.constant if body.constant else 0.0,
        )
        if any(row.body.groups()):
            rows.append(row)
        elif row.violation(np.zeros(0)) > 0:
            raise FormulaError("has no variables, and does not hold")
    return rows
