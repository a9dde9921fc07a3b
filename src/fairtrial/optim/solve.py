"""Solvers: HiGHS for what is linear or convex, SCIP for the global optimum of the rest."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.core.errors import NotInstalledError
from fairtrial.optim.model import pyomo_model
from fairtrial.optim.problem import Expression, Floats, Problem

CERTIFIED = 1e-6  # the relative gap below which an optimum is called one


class Solution(NamedTuple):
    """What a solver says of one problem."""

    status: str  # optimal, feasible, infeasible, unknown
    x: list[float] | None
    bound: float | None
    solver: str
    version: str
    duals: list[float] | None = None  # of the constraints, where a solver has them


def solve(problem: Problem, time_limit: float) -> Solution:
    """The right solver: HiGHS cannot do what is non-convex, and SCIP is slow on what is convex."""
    linear = problem.objective.is_linear and all(row.body.is_linear for row in problem.constraints)
    convex = problem.convex and all(row.body.is_linear for row in problem.constraints)
    return _highs(problem, time_limit) if linear or (convex and not problem.integers) else _scip(problem, time_limit)


def _highs(problem: Problem, time_limit: float) -> Solution:
    tight = {
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "qp_regularization_value": 1e-10,  # its default moves the solution by more than we certify
    }
    found = _run("highs", problem, time_limit, {**tight, "mip_rel_gap": 1e-9, "mip_feasibility_tolerance": 1e-9})
    if found.x is None or problem.objective.is_linear:
        return found
    assert problem.sense == "minimise"  # no family maximises anything convex
    return found._replace(bound=_convex_bound(problem, np.asarray(found.x), time_limit))


def _convex_bound(problem: Problem, x: Floats, time_limit: float) -> float | None:
    """A convex objective lies above its tangent plane; the plane's minimum is a linear programme, bounded by its duals.

    Whatever duals a solver gives (of the right sign), what they leave of the slope is minimised over the box: the
    bound holds exactly, and rests on no solver's tolerance (Neumaier and Shcherbina).
    """
    slope = problem.objective.gradient(x)
    plane = Expression(linear=tuple((i, float(c)) for i, c in enumerate(slope)))
    duals = _run("highs", msgspec.structs.replace(problem, objective=plane), time_limit, {}).duals
    if duals is None:
        return None
    lowest = max(_dual_bound(problem, slope, sign * np.asarray(duals)) for sign in (1.0, -1.0))
    return problem.value(x) - float(slope @ x) + lowest


def _dual_bound(problem: Problem, slope: Floats, duals: Floats) -> float:
    """Σ y·b + the least of (slope − Aᵀy)·x in the box, with y ≥ 0 for ≥ and y ≤ 0 for ≤; of a minimum."""
    rest, total = slope.copy(), 0.0
    for row, given in zip(problem.constraints, duals, strict=True):
        y = {"<=": min(0.0, given), ">=": max(0.0, given), "==": given}[row.relation]
        total += y * (row.bound - row.body.constant)
        for i, c in row.body.linear:
            rest[i] -= y * c
    low, high = problem.box
    return float(total + np.sum(np.minimum(rest * low, rest * high)))


def _scip(problem: Problem, time_limit: float) -> Solution:
    # Without verblevel 0 the direct interface dead-locks once SCIP has printed enough, past every time limit.
    options = {"display/verblevel": 0, "limits/gap": 1e-7, "numerics/feastol": 1e-9}
    if problem.floor is not None:  # a point there is optimal, and is found long before a bound is
        found = _run("scip_direct", problem, min(time_limit, 10.0), options)
        if found.x is not None and problem.value(np.asarray(found.x)) <= problem.floor + CERTIFIED:
            return found
    return _run("scip_direct", problem, time_limit, options)


def _run(name: str, problem: Problem, time_limit: float, options: dict[str, Any]) -> Solution:
    model = pyomo_model(problem)  # its import makes the solvers known
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    solver = SolverFactory(name)
    if not solver.available():
        raise NotInstalledError(f"the solver {name}", "optim")
    results = solver.solve(
        model,
        time_limit=time_limit,
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        solver_options=options,
    )
    version = ".".join(str(part) for part in solver.version() or ())
    label = "PySCIPOpt" if name.startswith("scip") else "HiGHS"
    infeasible = (TerminationCondition.provenInfeasible, TerminationCondition.locallyInfeasible)
    if results.termination_condition in infeasible:
        return Solution("infeasible", None, None, label, version)
    if results.solution_status not in (SolutionStatus.optimal, SolutionStatus.feasible):
        return Solution("unknown", None, None, label, version)
    results.solution_loader.load_vars()
    x = [float(model.x[i].value) for i in range(problem.n)]
    status = "optimal" if results.solution_status == SolutionStatus.optimal else "feasible"
    return Solution(status, x, _finite(results.objective_bound), label, version, _duals(model, results))


def _duals(model: Any, results: Any) -> list[float] | None:
    try:
        known = results.solution_loader.get_duals()
    except Exception:  # a mixed-integer or a global solver has none, and says so in its own way
        return None
    return [float(known.get(row, 0.0)) for row in model.rows.values()]


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None
