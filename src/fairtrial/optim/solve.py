"""Baselines: HiGHS for what is linear or convex, SCIP for certified global optima of the rest.

A problem whose variables fall into groups that have nothing to do with each other is solved group by group: that is how
separable problems of 100 variables get a certificate. Nothing is called optimal without a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError, NotInstalledError
from fairtrial.optim.model import pyomo_model
from fairtrial.optim.problem import Baseline, Constraint, Expression, Floats, Problem, problem_digest
from fairtrial.optim.sample import random_objective

CERTIFIED = 1e-6  # the relative gap below which an optimum is called one


class Found(NamedTuple):
    """What a solver says of one problem."""

    status: str  # optimal, feasible, infeasible, unknown
    x: list[float] | None
    bound: float | None
    solver: str
    version: str
    duals: list[float] | None = None  # of the constraints, where a solver has them


def baseline(problem: Problem, *, time_limit: float = 60.0) -> Baseline:
    """Solve a problem as well as the time allows, and say how far that is certified."""
    started = time.perf_counter()
    parts = [_solve(part, max(1.0, time_limit - (time.perf_counter() - started))) for part in components(problem)]
    seconds = time.perf_counter() - started
    solvers = ", ".join(dict.fromkeys(part.solver for part in parts))
    versions = ", ".join(dict.fromkeys(part.version for part in parts))
    common: dict[str, Any] = {
        "problem": problem.id,
        "solver": solvers,
        "version": versions,
        "seconds": round(seconds, 3),
        "digest": problem_digest(problem),
    }
    if any(part.status == "infeasible" for part in parts):
        return _pointless("infeasible", None, common)
    if any(part.x is None for part in parts):
        return _pointless("unknown", random_objective(problem), common)
    x = _joined(problem, parts)
    objective = problem.value(x)
    bounds = [part.bound for part in parts]
    bound = None if None in bounds else problem.objective.constant + math.fsum(b for b in bounds if b is not None)
    if problem.floor is not None:
        bound = problem.floor if bound is None else max(bound, problem.floor)
    sign = 1.0 if problem.sense == "minimise" else -1.0
    gap = None if bound is None else max(0.0, sign * (objective - bound)) / max(abs(objective), 1.0)
    certified = gap is not None and gap <= CERTIFIED and problem.violations(x).largest <= CERTIFIED
    return Baseline(
        status="optimal" if certified else "feasible",
        x=tuple(float(value) for value in x),
        objective=objective,
        bound=bound,
        gap=gap,
        certified=certified,
        random_objective=random_objective(problem),
        **common,
    )


def _pointless(status: Literal["infeasible", "unknown"], chance: float | None, common: dict[str, Any]) -> Baseline:
    return Baseline(
        status=status,
        x=None,
        objective=None,
        bound=None,
        gap=None,
        certified=status == "infeasible",
        random_objective=chance,
        **common,
    )


def _joined(problem: Problem, parts: Sequence[Found]) -> Floats:
    """The parts' solutions put together, moved inside the bounds by what solvers may be outside of them."""
    x = np.zeros(problem.n)
    for group, part in zip(groups(problem), parts, strict=True):
        assert part.x is not None
        x[group] = part.x
    x[list(problem.integers)] = np.round(x[list(problem.integers)])
    low, high = problem.box
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def groups(problem: Problem) -> list[list[int]]:
    """Variables that hang together, through the objective or through a constraint."""
    parent = list(range(problem.n))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    together = [*problem.objective.groups()]
    together += [tuple(i for group in row.body.groups() for i in group) for row in problem.constraints]
    for group in together:
        for other in group[1:]:
            parent[root(other)] = root(group[0])
    found: dict[int, list[int]] = {}
    for i in range(problem.n):
        found.setdefault(root(i), []).append(i)
    return list(found.values())


def components(problem: Problem) -> list[Problem]:
    """The problem as independent problems; the constant of the objective is in none of them."""
    found = groups(problem)
    return [_component(problem, group, number) for number, group in enumerate(found)]


def _component(problem: Problem, group: list[int], number: int) -> Problem:
    places = {i: place for place, i in enumerate(group)}
    rows = [row for row in problem.constraints if all(i in places for part in row.body.groups() for i in part)]
    return Problem(
        id=f"{problem.id}#{number}",
        family=problem.family,
        n=len(group),
        seed=problem.seed,
        sense=problem.sense,
        lower=tuple(problem.lower[i] for i in group),
        upper=tuple(problem.upper[i] for i in group),
        integers=tuple(places[i] for i in problem.integers if i in places),
        objective=_restricted(problem.objective, places),
        constraints=tuple(
            Constraint(body=_restricted(row.body, places), relation=row.relation, bound=row.bound - row.body.constant)
            for row in rows
        ),
        convex=problem.convex,
        tight=problem.tight,
        # The constant of the objective is in none of the parts.
        floor=None if problem.floor is None or len(group) < problem.n else problem.floor - problem.objective.constant,
    )


def _restricted(body: Expression, places: dict[int, int]) -> Expression:
    """The terms over these variables, counted anew."""
    squares = [s for s in body.squares if all(i in places for i, _ in s.linear)]
    monomials = [m for m in body.monomials if all(i in places for i, _ in m.powers)]
    return Expression(
        linear=tuple((places[i], c) for i, c in body.linear if i in places),
        quadratic=tuple((places[i], places[j], q) for i, j, q in body.quadratic if i in places and j in places),
        squares=tuple(msgspec.structs.replace(s, linear=tuple((places[i], c) for i, c in s.linear)) for s in squares),
        monomials=tuple(
            msgspec.structs.replace(m, powers=tuple((places[i], p) for i, p in m.powers)) for m in monomials
        ),
        waves=tuple(
            msgspec.structs.replace(w, variable=places[w.variable]) for w in body.waves if w.variable in places
        ),
    )


def _solve(problem: Problem, time_limit: float) -> Found:
    """The right solver: HiGHS cannot do what is non-convex, and SCIP is slow on what is convex."""
    linear = problem.objective.is_linear and all(row.body.is_linear for row in problem.constraints)
    convex = problem.convex and all(row.body.is_linear for row in problem.constraints)
    return _highs(problem, time_limit) if linear or (convex and not problem.integers) else _scip(problem, time_limit)


def _highs(problem: Problem, time_limit: float) -> Found:
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


def _scip(problem: Problem, time_limit: float) -> Found:
    # Without verblevel 0 the direct interface dead-locks once SCIP has printed enough, past every time limit.
    options = {"display/verblevel": 0, "limits/gap": 1e-7, "numerics/feastol": 1e-9}
    if problem.floor is not None:  # a point there is optimal, and is found long before a bound is
        found = _run("scip_direct", problem, min(time_limit, 10.0), options)
        if found.x is not None and problem.value(np.asarray(found.x)) <= problem.floor + CERTIFIED:
            return found
    return _run("scip_direct", problem, time_limit, options)


def _run(name: str, problem: Problem, time_limit: float, options: dict[str, Any]) -> Found:
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
        return Found("infeasible", None, None, label, version)
    if results.solution_status not in (SolutionStatus.optimal, SolutionStatus.feasible):
        return Found("unknown", None, None, label, version)
    results.solution_loader.load_vars()
    x = [float(model.x[i].value) for i in range(problem.n)]
    status = "optimal" if results.solution_status == SolutionStatus.optimal else "feasible"
    return Found(status, x, _finite(results.objective_bound), label, version, _duals(model, results))


def _duals(model: Any, results: Any) -> list[float] | None:
    try:
        known = results.solution_loader.get_duals()
    except Exception:  # a mixed-integer or a global solver has none, and says so in its own way
        return None
    return [float(known.get(row, 0.0)) for row in model.rows.values()]


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) and abs(value) < 1e19 else None


def check_solved(found: Baseline) -> None:
    """A suite cannot be built on a problem that nobody solved."""
    if found.status == "unknown":
        raise FairtrialError(f"{found.problem}: no solver found a feasible point in time; try a longer time limit")
