"""Baselines: the best solution of a problem, and how well it is certified.

A problem whose variables fall into independent groups is solved group by group, which is how separable problems of 100
variables get a certificate. Nothing is called optimal without a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.optim.problem import Baseline, Constraint, Expression, Floats, Problem, problem_digest
from fairtrial.optim.sample import random_objective
from fairtrial.optim.solve import CERTIFIED, Solution, solve


def baseline(problem: Problem, *, time_limit: float = 60.0) -> Baseline:
    """Solve a problem within the time limit, and state how well the solution is certified."""
    started = time.perf_counter()
    parts = [solve(part, max(1.0, time_limit - (time.perf_counter() - started))) for part in components(problem)]
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
        return _baseline_without_point("infeasible", None, common)
    if any(part.x is None for part in parts):
        return _baseline_without_point("unknown", random_objective(problem), common)
    x = _join(problem, parts)
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


def _baseline_without_point(
    status: Literal["infeasible", "unknown"], chance: float | None, common: dict[str, Any]
) -> Baseline:
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


def _join(problem: Problem, parts: Sequence[Solution]) -> Floats:
    """Return the joined solutions of the parts, clipped to the bounds, which solvers may slightly exceed."""
    x = np.zeros(problem.n)
    for group, part in zip(groups(problem), parts, strict=True):
        assert part.x is not None
        x[group] = part.x
    x[list(problem.integers)] = np.round(x[list(problem.integers)])
    low, high = problem.box
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def groups(problem: Problem) -> list[list[int]]:
    """Return the groups of variables that are connected by the objective or by a constraint."""
    parent = list(range(problem.n))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    connected = [*problem.objective.groups()]
    connected += [tuple(i for group in row.body.groups() for i in group) for row in problem.constraints]
    for group in connected:
        for member in group[1:]:
            parent[root(member)] = root(group[0])
    by_root: dict[int, list[int]] = {}
    for i in range(problem.n):
        by_root.setdefault(root(i), []).append(i)
    return list(by_root.values())


def components(problem: Problem) -> list[Problem]:
    """Return the problem as independent problems; none of them has the constant of the objective."""
    return [_component(problem, group, number) for number, group in enumerate(groups(problem))]


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
        objective=_restrict(problem.objective, places),
        constraints=tuple(
            Constraint(body=_restrict(row.body, places), relation=row.relation, bound=row.bound - row.body.constant)
            for row in rows
        ),
        convex=problem.convex,
        tight=problem.tight,
        # None of the parts has the constant of the objective.
        floor=None if problem.floor is None or len(group) < problem.n else problem.floor - problem.objective.constant,
    )


def _restrict(body: Expression, places: dict[int, int]) -> Expression:
    """Return the terms over these variables, with renumbered indices."""
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


def check_solved(baseline: Baseline) -> None:
    """Raise FairtrialError if a problem has no baseline solution, since a suite cannot use it."""
    if baseline.status == "unknown":
        raise FairtrialError(f"{baseline.problem}: no solver found a feasible point in time; try a longer time limit")
