"""Solvers: HiGHS for linear and convex problems, SCIP for the global optimum of the rest."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.core.errors import NotInstalledError
from fairtrial.tracks.optimisation.model import pyomo, pyomo_model
from fairtrial.tracks.optimisation.problem import Expression, Floats, OptimisationProblem

CERTIFIED = 1e-6  # the largest relative gap of a certified optimum
MEMORY_MB = 4096  # of a process that solves


class Solution(NamedTuple):
    """The result of a solver for one problem."""

    status: str  # optimal, feasible, infeasible, unbounded, unknown
    x: list[float] | None
    bound: float | None
    solver: str
    version: str
    duals: list[float] | None = None  # of the constraints, if the solver provides them


Found = Callable[[list[float]], None]  # called with points on the way, each better than the one before


def get_ready(problem: OptimisationProblem) -> None:
    """Import what solving a problem needs, which takes a second or more on a busy machine."""
    pyomo()
    from pyomo.contrib.solver.common.factory import SolverFactory

    SolverFactory("highs" if is_linear(problem) else "scip_direct").available()


def solve(problem: OptimisationProblem, time_limit: float, found: Found | None = None) -> Solution:
    """Solve a problem with the right solver: HiGHS cannot solve non-convex ones, and SCIP is slow on convex ones."""
    if is_linear(problem):
        return _highs(problem, time_limit)
    if not problem.convex or problem.integers or not all(row.body.is_linear for row in problem.constraints):
        return _scip(problem, time_limit, found)
    if problem.sense == "maximise":
        turned = msgspec.structs.replace(problem, sense="minimise", objective=problem.objective.negative())
        solution = solve(turned, time_limit, found)
        return solution._replace(bound=None if solution.bound is None else -solution.bound)
    started = time.monotonic()
    solution = _highs(problem, time_limit)
    if solution.status == "unknown":  # as where a constraint holds with equality at the free minimum
        return _scip(problem, _rest(started, time_limit), found)
    if solution.bound is None and solution.status in ("optimal", "feasible"):
        # Without bounds of the variables, a tangent plane may have no minimum: SCIP has bounds of its own.
        other = _scip(problem, _rest(started, time_limit), found)
        return solution._replace(bound=other.bound, solver=f"{solution.solver}, {other.solver}")
    return solution


def _rest(started: float, time_limit: float) -> float:
    return max(0.1, time_limit - (time.monotonic() - started))


def is_linear(problem: OptimisationProblem) -> bool:
    """Return whether objective and constraints are linear."""
    return problem.objective.is_linear and all(row.body.is_linear for row in problem.constraints)


def _highs(problem: OptimisationProblem, time_limit: float) -> Solution:
    tight = {
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "qp_regularization_value": 1e-10,  # its default shifts the solution by more than we certify
    }
    started = time.monotonic()
    solution = _run("highs", problem, time_limit, {**tight, "mip_rel_gap": 1e-9, "mip_feasibility_tolerance": 1e-9})
    if solution.x is None or problem.objective.is_linear:
        return solution
    return solution._replace(bound=_convex_bound(problem, np.asarray(solution.x), _rest(started, time_limit)))


def _convex_bound(problem: OptimisationProblem, x: Floats, time_limit: float) -> float | None:
    """Return a lower bound of a convex objective: the dual bound of the linear programme over its tangent plane.

    A convex objective lies above its tangent plane. For any duals of the right sign, the remaining slope is minimised
    over the box, so the bound holds exactly and depends on no solver tolerance (Neumaier and Shcherbina).
    """
    slope = problem.objective.gradient(x)
    plane = Expression(linear=tuple((i, float(c)) for i, c in enumerate(slope)))
    duals = _run("highs", msgspec.structs.replace(problem, objective=plane), time_limit, {}).duals
    candidates = [np.zeros(len(problem.constraints))]  # enough where constraints do not matter, as at a free minimum
    if duals is not None:
        candidates += [np.asarray(duals), -np.asarray(duals)]
    lowest = max(_dual_bound(problem, slope, one) for one in candidates)
    if lowest == -math.inf:
        return None
    return problem.value(x) - float(slope @ x) + lowest


def _dual_bound(problem: OptimisationProblem, slope: Floats, duals: Floats) -> float:
    """Return Σ y·b + min over the box of (slope − Aᵀy)·x, with y ≥ 0 for ≥ and y ≤ 0 for ≤, for a minimisation."""
    rest, total = slope.copy(), 0.0
    for row, dual in zip(problem.constraints, duals, strict=True):
        y = {"<=": min(0.0, dual), ">=": max(0.0, dual), "==": dual}[row.relation]
        total += y * (row.bound - row.body.constant)
        for i, c in row.body.linear:
            rest[i] -= y * c
    low, high = problem.box
    with np.errstate(invalid="ignore"):  # 0·∞ of a variable that does not matter
        ends = np.where(rest == 0, 0.0, np.minimum(rest * low, rest * high))
    return float(total + np.sum(ends))


def _scip(problem: OptimisationProblem, time_limit: float, found: Found | None = None) -> Solution:
    memory = 0.7 * MEMORY_MB  # it then stops and tells what it has, which one without memory cannot
    options = {"display/verblevel": 0, "limits/gap": 1e-7, "numerics/feastol": 1e-9, "limits/memory": memory}
    started = time.monotonic()
    if problem.floor is not None:  # a point at the floor is optimal, and is found long before a bound
        solution = _run("scip_direct", problem, min(time_limit, 10.0), options, found)
        if solution.x is not None and problem.value(np.asarray(solution.x)) <= problem.floor + CERTIFIED:
            return solution
    return _run("scip_direct", problem, _rest(started, time_limit), options, found)


def _run(
    name: str, problem: OptimisationProblem, time_limit: float, options: dict[str, Any], found: Found | None = None
) -> Solution:
    started = time.monotonic()
    model = pyomo_model(problem)  # importing it registers the solvers
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

    solver = _scip_solver(model, found) if name == "scip_direct" else SolverFactory(name)
    if not solver.available():
        raise NotInstalledError(f"the solver {name}", "optim")
    results = solver.solve(
        model,
        time_limit=_rest(started, time_limit),
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        solver_options=options,
    )
    version = ".".join(str(part) for part in solver.version() or ())
    label = "PySCIPOpt" if name.startswith("scip") else "HiGHS"
    ended = results.termination_condition
    status = ""
    if ended in (TerminationCondition.provenInfeasible, TerminationCondition.locallyInfeasible):
        status = "infeasible"
    elif ended == TerminationCondition.unbounded:
        status = "unbounded"
    elif ended == TerminationCondition.infeasibleOrUnbounded:
        status = _why_no_optimum(name, problem, _rest(started, time_limit), options)
    elif results.solution_status not in (SolutionStatus.optimal, SolutionStatus.feasible):
        status = "unknown"
    if status:
        return Solution(status, None, None, label, version)
    results.solution_loader.load_vars()
    x = [_value(model.x[i]) for i in range(problem.n)]
    status = "optimal" if results.solution_status == SolutionStatus.optimal else "feasible"
    return Solution(status, x, _finite(results.objective_bound), label, version, _duals(model, results))


def _why_no_optimum(name: str, problem: OptimisationProblem, time_limit: float, options: dict[str, Any]) -> str:
    """Return whether a problem without an optimum is infeasible or unbounded: it is the latter if it has any point."""
    if not problem.constraints:  # a model without anything in it is nothing that solvers solve
        low, high = problem.box
        bounded = [i for i in problem.integers if math.isfinite(low[i]) and math.isfinite(high[i])]
        return "infeasible" if any(math.ceil(low[i]) > math.floor(high[i]) for i in bounded) else "unbounded"
    feasibility = msgspec.structs.replace(problem, objective=Expression())
    solution = _run(name, feasibility, time_limit, options)
    return "unbounded" if solution.x is not None else "infeasible" if solution.status == "infeasible" else "unknown"


def _value(variable: Any) -> float:
    """Return the value of a variable; of one that is in no expression, the one nearest to 0."""
    if variable.value is not None:
        return float(variable.value)
    return float(min(max(0.0, variable.lb or 0.0), math.inf if variable.ub is None else variable.ub))


def _duals(model: Any, results: Any) -> list[float] | None:
    try:
        duals = results.solution_loader.get_duals()
    except Exception:  # mixed-integer and global solvers have none, and each raises its own error
        return None
    return [float(duals.get(row, 0.0)) for row in model.rows.values()]


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None


def _scip_solver(model: Any, found: Found | None) -> Any:
    """Return Pyomo's solver of that name for a model; `found` is called with each point that is better than the last.

    Pyomo reads what SCIP prints from a pipe, in a thread: if SCIP kept that thread from running, it would wait forever
    once it has printed enough to fill the pipe, whatever its time limit.
    """
    from pyomo.contrib.solver.solvers.scip.scip_direct import ScipDirect

    class ListeningScip(ScipDirect):  # type: ignore[misc]
        def _create_solver_model(self, *arguments: Any) -> Any:
            made, *others = super()._create_solver_model(*arguments)
            if found is not None:
                variables = self._pyomo_var_to_solver_var_map
                _listen(made, [variables.get(variable) for variable in model.x.values()], found)
            return (_Released(made), *others)

    return ListeningScip()


class _Released:
    """A model of SCIP that is solved without holding the interpreter, while other threads run."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def optimize(self) -> None:
        self._model.optimizeNogil()


def _listen(model: Any, variables: list[Any], found: Found) -> None:
    from pyscipopt import Eventhdlr
    from pyscipopt.scip import PY_SCIP_EVENTTYPE

    class Best(Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexit(self) -> None:
            self.model.dropEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexec(self, _: Any) -> None:
            best = self.model.getBestSol()
            found([0.0 if one is None else self.model.getSolVal(best, one) for one in variables])

    model.includeEventhdlr(Best(), "best", "tells the best point so far")
