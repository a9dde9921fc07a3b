"""A problem as a Pyomo model. Only this module and `solve` use Pyomo."""

from __future__ import annotations

import operator
from importlib.util import find_spec
from typing import Any

import numpy as np

from fairtrial.core.errors import NotInstalledError
from fairtrial.tracks.optimisation.formula import FUNCTIONS, Interpreter
from fairtrial.tracks.optimisation.problem import UNBOUNDED, Expression, OptimisationProblem

_RELATIONS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


def pyomo() -> Any:
    """Return Pyomo's modelling module; raise NotInstalledError if it is missing."""
    try:
        from pyomo import environ
    except ImportError:
        raise NotInstalledError("solving problems", "optim") from None
    return environ


def check_installed() -> None:
    """Raise NotInstalledError if problems cannot be solved here; it imports nothing, which would take a second."""
    if find_spec("pyomo") is None:
        raise NotInstalledError("solving problems", "optim")


def pyomo_model(problem: OptimisationProblem) -> Any:
    """Return the model of a problem; `model.x[i]` are the variables, counted from 0."""
    pe = pyomo()
    model = pe.ConcreteModel(problem.id)
    integers = set(problem.integers)
    model.x = pe.Var(
        range(problem.n),
        domain=lambda _, i: pe.Integers if i in integers else pe.Reals,
        bounds=lambda _, i: (_bound(problem.lower[i]), _bound(problem.upper[i])),
    )
    sense = pe.minimize if problem.sense == "minimise" else pe.maximize
    model.objective = pe.Objective(expr=pyomo_expression(problem.objective, model.x, pe), sense=sense)
    model.rows = pe.ConstraintList()
    for row in problem.constraints:
        model.rows.add(_RELATIONS[row.relation](pyomo_expression(row.body, model.x, pe), row.bound))
    return model


def pyomo_expression(body: Expression, x: Any, pe: Any) -> Any:
    """Return an expression over Pyomo variables."""
    terms = [body.constant]
    terms += [c * x[i] for i, c in body.linear]
    terms += [q * x[i] * x[j] for i, j, q in body.quadratic]
    for square in body.squares:
        terms.append(square.weight * (sum(c * x[i] for i, c in square.linear) + square.constant) ** 2)
    for monomial in body.monomials:
        term = monomial.weight
        for i, p in monomial.powers:
            term = term * x[i] ** p
        terms.append(term)
    terms += [wave.weight * pe.cos(wave.rate * x[wave.variable] + wave.shift) for wave in body.waves]
    if body.formulas:
        terms += _formulas(body, x, pe)
    return sum(terms)


def _formulas(body: Expression, x: Any, pe: Any) -> list[Any]:
    variables = np.empty(len(x), dtype=object)
    variables[:] = [x[i] for i in range(len(x))]
    functions = {name: getattr(pe, name) for name in FUNCTIONS if name != "abs"}
    functions["abs"] = lambda value: (value**2) ** 0.5  # SCIP reads this as an absolute value; of `abs` Pyomo says no
    interpreter = Interpreter({"x": variables}, functions)
    return [formula.weight * interpreter.value(formula.text) for formula in body.formulas]


def _bound(value: float) -> float | None:
    return None if abs(value) >= UNBOUNDED else value
