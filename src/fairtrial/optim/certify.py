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
from fairtrial.optim.multistart import search
from fairtrial.optim.problem import Baseline, Constraint, Expression, Floats, Problem, problem_digest
from fairtrial.optim.sample import random_objective
from fairtrial.optim.solve import CERTIFIED, Solution, solve


def baseline(problem: Problem, *, time_limit: float = 60.0, known: Baseline | None = None) -> Baseline:
    """Solve a problem within the time limit, and state how well the solution is certified.

    Args:
        known: An earlier result that was not certified; the better point and the better bound of both are kept.
    """
    started = time.monotonic()
    parts = [solve(part, max(1.0, time_limit - (time.monotonic() - started))) for part in components(problem)]
    common: dict[str, Any] = {
        "problem": problem.id,
        "solver": ", ".join(dict.fromkeys(part.solver for part in parts)),
        "version": ", ".join(dict.fromkeys(part.version for part in parts)),
        "digest": problem_digest(problem),
        "time_limit": time_limit,
    }
    if any(part.status == "unbounded" for part in parts):
        raise FairtrialError(
            f"{problem.id} has no optimum: its objective improves without end; bound its variables, or add constraints"
        )
    if any(part.status == "infeasible" for part in parts):
        return _baseline_without_point("infeasible", None, {**common, "seconds": _since(started)})
    bound = _bound(problem, parts, known)
    x = _join(problem, parts) if all(part.x is not None for part in parts) else None
    x = _better(problem, x, None if known is None or known.x is None else np.asarray(known.x))
    if not _certifies(problem, x, bound):
        left = max(5.0, time_limit / 5, time_limit - (time.monotonic() - started))
        searched = search(problem, min(left, time_limit), None if x is None else x.tolist())
        if searched is not None and (x is None or not np.array_equal(searched, x)):
            x = searched
            common["solver"] += ", local search"
    seconds = _since(started)
    chance = known.random_objective if known is not None else None  # the points are the same every time
    if chance is None:
        chance = random_objective(problem, max(10.0, time_limit))
    if x is None:
        return _baseline_without_point("unknown", chance, {**common, "seconds": seconds, "bound": bound})
    certified = _certifies(problem, x, bound)
    return Baseline(
        status="optimal" if certified else "feasible",
        x=tuple(float(value) for value in x),
        objective=problem.value(x),
        bound=bound,
        gap=_gap(problem, problem.value(x), bound),
        certified=certified,
        random_objective=chance,
        seconds=seconds,
        **common,
    )


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def _bound(problem: Problem, parts: Sequence[Solution], known: Baseline | None) -> float | None:
    """Return the best bound of the objective: from the solvers, from construction, or known already."""
    own = [part.bound for part in parts]
    joined = None if None in own else problem.objective.constant + math.fsum(b for b in own if b is not None)
    bounds = [b for b in (joined, problem.floor, None if known is None else known.bound) if b is not None]
    if not bounds:
        return None
    return max(bounds) if problem.sense == "minimise" else min(bounds)


def _better(problem: Problem, x: Floats | None, other: Floats | None) -> Floats | None:
    """Return the better of two points; one that violates the constraints is worse than any other."""
    if x is None or other is None:
        return other if x is None else x
    if problem.violations(x).largest > CERTIFIED:
        return other
    return other if problem.better(problem.value(other), problem.value(x)) else x


def _gap(problem: Problem, objective: float, bound: float | None) -> float | None:
    sign = 1.0 if problem.sense == "minimise" else -1.0
    return None if bound is None else max(0.0, sign * (objective - bound)) / max(abs(objective), 1.0)


def _certifies(problem: Problem, x: Floats | None, bound: float | None) -> bool:
    if x is None or bound is None or not math.isfinite(problem.value(x)):
        return False
    gap = _gap(problem, problem.value(x), bound)
    return gap is not None and gap <= CERTIFIED and problem.violations(x).largest <= CERTIFIED


def _baseline_without_point(
    status: Literal["infeasible", "unknown"], chance: float | None, common: dict[str, Any]
) -> Baseline:
    return Baseline(
        status=status,
        x=None,
        objective=None,
        gap=None,
        certified=status == "infeasible",
        random_objective=chance,
        **{"bound": None, **common},
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
        formulas=tuple(f.renumbered(places) for f in body.formulas if all(i in places for i in f.variables)),
    )


def check_solved(baseline: Baseline) -> None:
    """Raise FairtrialError if a problem has no baseline solution, since a suite cannot use it."""
    if baseline.status == "unknown":
        raise FairtrialError(f"{baseline.problem}: no feasible point was found in time; try a longer --time-limit")
