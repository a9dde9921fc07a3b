"""MPS and LP files, read by HiGHS, and models of Pyomo as problems."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.core.user_functions import load_file
from fairtrial.tracks.optimisation.algebra import Sum, add, as_expression, functions
from fairtrial.tracks.optimisation.arrays import FormulaError, limited_work
from fairtrial.tracks.optimisation.formula import Interpreter
from fairtrial.tracks.optimisation.model import pyomo
from fairtrial.tracks.optimisation.model_reader import read_apart
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Constraint, Expression, OptimisationProblem
from fairtrial.tracks.optimisation.structure import is_convex

SUFFIXES = (".mps", ".lp")  # also compressed: .mps.gz


def read_model_file(path: Path) -> OptimisationProblem:
    """Return the problem in an MPS or LP file, linear or quadratic, with or without integers."""
    if find_spec("highspy") is None:
        raise NotInstalledError("reading MPS and LP files", "optim")
    if not path.is_file():
        raise FairtrialError(f"there is no file {path}")
    return read_apart(path)


def read_here(path: Path) -> OptimisationProblem:
    """Return the problem in an MPS or LP file, in this process: it may never come back."""
    import highspy

    model = _read_by_highs(path, highspy)
    lp = model.lp_
    kinds = {highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger}
    if not set(lp.integrality_) <= kinds:
        raise FairtrialError(f"{path} has semi-continuous variables, which problems cannot have")
    integers = [i for i, kind in enumerate(lp.integrality_) if kind == highspy.HighsVarType.kInteger]
    objective = Expression(
        constant=float(lp.offset_),
        linear=tuple((i, float(c)) for i, c in enumerate(lp.col_cost_) if c),
        quadratic=tuple(_hessian(model.hessian_)),
    )
    sense = "maximise" if lp.sense_ == highspy.ObjSense.kMaximize else "minimise"
    return _problem(
        path.name.partition(".")[0],
        _names(path, lp) or [f"x[{i}]" for i in range(lp.num_col_)],
        sense=sense,
        lower=tuple(_finite(float(value)) for value in lp.col_lower_),
        upper=tuple(_finite(float(value)) for value in lp.col_upper_),
        integers=tuple(integers),
        objective=objective,
        constraints=[row for line in _matrix(lp) for row in line],
    )


def _names(path: Path, lp: Any) -> list[str]:
    """Return the names of the variables, if the file has any."""
    try:
        return [str(name) for name in lp.col_names_]
    except UnicodeDecodeError:
        raise FairtrialError(f"{path}: the name of a variable is not UTF-8: save the file in UTF-8") from None


def _read_by_highs(path: Path, highspy: Any) -> Any:
    """Return the model in a file; what HiGHS writes into its log says what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        solver = highspy.Highs()
        solver.setOptionValue("log_to_console", False)
        solver.setOptionValue("log_file", str(log))
        status = solver.readModel(str(path))
        solver.setOptionValue("log_file", "")
        lines = log.read_text("utf-8", errors="replace").splitlines()  # it quotes the file
        wrong = "ERROR" if status == highspy.HighsStatus.kError else "WARNING"
        reasons = [line.partition(":")[2].strip() for line in lines if line.startswith(wrong)]
        # What HiGHS leaves out of a model with a warning is a mistake in the file all the same.
        reasons = [reason for reason in reasons if wrong == "ERROR" or "ignored" in reason]
        if reasons or wrong == "ERROR":
            told = "; ".join(one for one in reasons if not one.startswith("Parser error")) or "a parser error"
            raise FairtrialError(f"{path} cannot be read: {told} (HiGHS {solver.version()})")
        return solver.getModel()


def _hessian(hessian: Any) -> list[tuple[int, int, float]]:
    """Return ½ xᵀQx as terms; Q is stored as its lower triangle."""
    terms = []
    for column in range(hessian.dim_):
        for place in range(hessian.start_[column], hessian.start_[column + 1]):
            row, value = int(hessian.index_[place]), float(hessian.value_[place])
            if value:
                terms.append((min(row, column), max(row, column), value / 2 if row == column else value))
    return terms


def _matrix(lp: Any) -> list[list[Constraint]]:
    """Return the constraints of every row: two for a range, none for a free row."""
    matrix = lp.a_matrix_
    rows: list[list[tuple[int, float]]] = [[] for _ in range(lp.num_row_)]
    by_column = str(matrix.format_).endswith("kColwise")
    for major in range(len(matrix.start_) - 1):
        for place in range(matrix.start_[major], matrix.start_[major + 1]):
            minor, value = int(matrix.index_[place]), float(matrix.value_[place])
            row, column = (minor, major) if by_column else (major, minor)
            rows[row].append((column, value))
    bounds = zip(rows, lp.row_lower_, lp.row_upper_, strict=True)
    return [_row(Expression(linear=tuple(sorted(terms))), float(low), float(high)) for terms, low, high in bounds]


def _row(body: Expression, low: float, high: float) -> list[Constraint]:
    if low == high:
        return [Constraint(body=body, relation="==", bound=low)]
    rows = [] if low <= -UNBOUNDED else [Constraint(body=body, relation=">=", bound=low)]
    return rows if high >= UNBOUNDED else [*rows, Constraint(body=body, relation="<=", bound=high)]


def read_pyomo(path: Path, name: str = "") -> OptimisationProblem:
    """Return the problem of a Pyomo model in a Python file: the model of that name, or the only one there is.

    The file is executed. A name may be that of a function that returns the model.
    """
    pe = pyomo()
    try:
        module = load_file(path)
    except ValueError as error:
        raise FairtrialError(str(error)) from None
    if name:
        model = getattr(module, name, None)
        if callable(model) and not isinstance(model, pe.ConcreteModel):
            model = _called(model, f"{path.name}:{name}")
    else:
        models = {key: value for key, value in vars(module).items() if isinstance(value, pe.ConcreteModel)}
        if len({id(one) for one in models.values()}) > 1:
            raise FairtrialError(f"{path} has several models: name one, {path}:{next(iter(models))}")
        model = next(iter(models.values()), None)
    if not isinstance(model, pe.ConcreteModel):
        which = f"`{name}` that is a ConcreteModel, or a function that returns one" if name else "ConcreteModel"
        raise FairtrialError(f"{path} has no {which}; name a model or a function like {path.name}:model")
    try:
        with limited_work():
            return _from_pyomo(model, path.stem, pe)
    except FormulaError as error:
        raise FairtrialError(f"{path}: the model has something that problems cannot have: {error}") from None


def _called(function: Any, name: str) -> Any:
    try:
        return function()
    except Exception as error:  # a user's function may raise anything
        raise FairtrialError(f"{name} failed: {type(error).__name__}: {error}") from error


def _from_pyomo(model: Any, name: str, pe: Any) -> OptimisationProblem:
    variables = [v for v in model.component_data_objects(pe.Var, active=True) if not v.fixed]
    objectives = list(model.component_data_objects(pe.Objective, active=True))
    if len(objectives) != 1:
        raise FairtrialError(f"{name}: a problem has one objective, and the model has {len(objectives)}")
    read = _reader(variables)
    rows: list[Constraint] = []
    for constraint in model.component_data_objects(pe.Constraint, active=True):
        body = read(constraint.body)
        sides = ((-math.inf, pe.value(constraint.lower)), (math.inf, pe.value(constraint.upper)))
        low, high = (nowhere if value is None else float(value) for nowhere, value in sides)
        rows += _row(msgspec.structs.replace(body, constant=0.0), low - body.constant, high - body.constant)
    return _problem(
        name,
        [v.name for v in variables],
        sense="maximise" if objectives[0].sense == pe.maximize else "minimise",
        lower=tuple(-UNBOUNDED if v.lb is None else float(v.lb) for v in variables),
        upper=tuple(UNBOUNDED if v.ub is None else float(v.ub) for v in variables),
        integers=tuple(i for i, v in enumerate(variables) if v.is_integer() or v.is_binary()),
        objective=read(objectives[0].expr),
        constraints=rows,
    )


def _reader(variables: list[Any]) -> Callable[[Any], Expression]:
    """Return what reads expressions of Pyomo: as texts, with names for the variables that cannot be mistaken."""
    from pyomo.core.expr import expression_to_string
    from pyomo.core.expr.symbol_map import SymbolMap

    names = {id(variable): f"v{i}" for i, variable in enumerate(variables)}
    interpreter = Interpreter({f"v{i}": Sum.variable(i) for i in range(len(variables))}, functions(), add)

    def read(expression: Any) -> Expression:
        symbols = SymbolMap(lambda variable: names.get(id(variable), variable.name))
        text = expression_to_string(expression, verbose=False, smap=symbols, compute_values=True)
        return as_expression(Sum.of(interpreter.value(text)))

    return read


def _finite(value: float) -> float:
    return math.copysign(UNBOUNDED, value) if abs(value) >= UNBOUNDED else value


def _problem(
    name: str, names: Sequence[str], *, sense: Any, objective: Expression, constraints: list[Constraint], **more: Any
) -> OptimisationProblem:
    if not names:
        raise FairtrialError(f"{name} has no variables")
    return OptimisationProblem(
        id=name,
        family=name,
        n=len(names),
        seed=0,
        sense=sense,
        objective=objective,
        constraints=tuple(constraints),
        convex=is_convex(objective, sense, constraints, more["integers"]),
        names=tuple(names),
        **more,
    )
