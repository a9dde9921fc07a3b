"""Baselines: the best solution of a problem, and how well it is certified.

A problem whose variables fall into independent groups is solved group by group, which is how separable problems of 100
variables get a certificate. Nothing is called optimal without a bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.multistart import far_out, first_point, import_scipy, search
from fairtrial.tracks.optimisation.problem import Baseline, Constraint, Expression, Floats, OptimisationProblem
from fairtrial.tracks.optimisation.sample import random_objective
from fairtrial.tracks.optimisation.solve import CERTIFIED, Solution, is_linear, solve

Report = Callable[[Baseline], None]
_KEPT = 0.3  # of the time limit, for the search and for chance
_MAX_KEPT = 10.0  # seconds
_LEAST = 0.3  # seconds for a part of the work when the time is up
_FAR = 1e9  # nobody means a point out here
_NOT_TRIED = Solution("unknown", None, None, "", "")


def baseline(
    problem: OptimisationProblem,
    *,
    time_limit: float = 60.0,
    known: Baseline | None = None,
    report: Report | None = None,
) -> Baseline:
    """Solve a problem within the time limit, and state how well the solution is certified.

    Args:
        known: An earlier result that was not certified; the better point and the better bound of both are kept.
        report: Called with the best result so far whenever there is a better one, for those who cannot wait.
    """
    work = _Progress(problem, time_limit, known, report or (lambda _: None))
    kept = min(_MAX_KEPT, _KEPT * time_limit)
    if not is_linear(problem):
        import_scipy()
        first = first_point(problem, kept / 4)
        work.offer(first)
        if first is not None and not np.isfinite(problem.box).all():
            check_distance(problem, far_out(problem, first, kept / 4))
    parts = _solve_parts(problem, work, kept)
    if any(part.status == "infeasible" for part in parts):
        return work.infeasible()
    if any(part.status == "unbounded" for part in parts):
        raise FairtrialError(
            f"{problem.id} has no optimum: its objective improves without end; bound its variables, or add constraints"
        )
    work.bound = _bound(problem, parts, known)
    start = _join(problem, [part.x for part in parts])
    work.offer(start)
    if not work.is_certified:
        before = work.x
        search(problem, max(_LEAST, work.left - kept / 2), start if work.x is None else work.x, found=work.offer)
        work.solvers += [] if work.x is before else ["local search"]
        check_distance(problem, work.x)
    work.end()
    if work.chance is None:  # the points are the same every time
        work.chance = _chance(problem, max(_LEAST, work.left))
    return work.so_far()


class _Progress:
    """The best that is known of a problem while it is being solved."""

    def __init__(self, problem: OptimisationProblem, time_limit: float, known: Baseline | None, report: Report) -> None:
        self._problem, self._limit, self._report = problem, time_limit, report
        self._nothing, self._started = Baseline.unknown(problem, time_limit), time.monotonic()
        self._seconds: float | None = None
        self.solvers: list[str] = []
        self.versions: list[str] = []
        self.x = None if known is None or known.x is None else np.asarray(known.x, dtype=np.float64)
        self.bound = None if known is None else known.bound
        self.chance = None if known is None else known.random_objective

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._started + self._limit - time.monotonic()

    @property
    def is_certified(self) -> bool:
        return _certifies(self._problem, self.x, self.bound)

    def offer(self, x: Floats | None) -> None:
        """Take a point if it is feasible and better than the best so far, and report it."""
        if x is not None and _is_better(self._problem, x, self.x):
            self.x = np.array(x, dtype=np.float64)
            self._report(self.so_far())

    def end(self) -> None:
        """Stop the clock: what follows is not solving."""
        self._seconds = self._since_start()
        self._report(self.so_far())

    def _since_start(self) -> float:
        return round(time.monotonic() - self._started, 3)

    def infeasible(self) -> Baseline:
        """Return that there is no feasible point, as a solver has proved."""
        return msgspec.structs.replace(self._empty("infeasible"), certified=True, bound=None, random_objective=None)

    def so_far(self) -> Baseline:
        """Return what is known now as a result."""
        x, problem = self.x, self._problem
        if x is None:
            return self._empty("unknown")
        return msgspec.structs.replace(
            self._empty("optimal" if self.is_certified else "feasible"),
            x=tuple(float(value) for value in x),
            objective=problem.value(x),
            gap=_gap(problem, problem.value(x), self.bound),
            certified=self.is_certified,
        )

    def _empty(self, status: Literal["optimal", "infeasible", "feasible", "unknown"]) -> Baseline:
        return msgspec.structs.replace(
            self._nothing,
            status=status,
            bound=self.bound,
            solver=", ".join(filter(None, dict.fromkeys(self.solvers))),
            version=", ".join(filter(None, dict.fromkeys(self.versions))),
            seconds=self._since_start() if self._seconds is None else self._seconds,
            random_objective=self.chance,
        )


def _solve_parts(problem: OptimisationProblem, work: _Progress, kept: float) -> list[Solution]:
    """Solve the independent parts one after the other; a point of the last one completes those of the others."""
    parts: list[Solution] = []
    points: dict[int, Sequence[float] | None] = {}
    all_parts = components(problem)
    for number, part in enumerate(all_parts):

        def found(x: Sequence[float], number: int = number) -> None:
            points[number] = x
            if len(points) == len(all_parts):
                work.offer(_join(problem, list(points.values())))

        left = work.left - kept
        solution = solve(part, left, found) if left > 0 or not number else _NOT_TRIED
        parts.append(solution)
        points[number] = solution.x
        work.solvers += [solution.solver]
        work.versions += [solution.version]
        if solution.status == "infeasible":
            break
    return parts


def check_distance(problem: OptimisationProblem, x: Floats | None) -> None:
    """Raise FairtrialError if the search went out to where nothing ends, and further out is better still."""
    if x is None:
        return
    low, high = problem.box
    for i in range(problem.n):
        if abs(x[i]) < _FAR or not math.isinf(high[i] if x[i] > 0 else low[i]):
            continue
        further = x.copy()
        further[i] *= 2
        if _is_better(problem, further, x) or not math.isfinite(problem.value(further)):
            name = problem.names[i] if problem.names else f"x_{i + 1}"
            raise FairtrialError(
                f"{problem.id}: no optimum was found, and there may be none: its objective still improves at "
                f"{name} = {x[i]:.0e}; bound its variables, or add constraints"
            )


def _chance(problem: OptimisationProblem, seconds: float) -> float | None:
    try:
        return random_objective(problem, seconds)
    except (MemoryError, ArithmeticError, ValueError):  # the region is too large, or its numbers are
        return None


def _bound(problem: OptimisationProblem, parts: Sequence[Solution], known: Baseline | None) -> float | None:
    """Return the best bound of the objective: from the solvers, from construction, or known already."""
    own = [part.bound for part in parts]
    joined = None if None in own else problem.objective.constant + math.fsum(b for b in own if b is not None)
    bounds = [b for b in (joined, problem.floor, None if known is None else known.bound) if b is not None]
    if not bounds:
        return None
    return max(bounds) if problem.sense == "minimise" else min(bounds)


def _is_better(problem: OptimisationProblem, x: Floats, other: Floats | None) -> bool:
    value = problem.value(x)
    if not math.isfinite(value) or problem.violations(x).largest > max(CERTIFIED, problem.tolerance):
        return False
    if other is None or not math.isfinite(problem.value(other)):
        return True
    return problem.better(value, problem.value(other))


def _gap(problem: OptimisationProblem, objective: float, bound: float | None) -> float | None:
    sign = 1.0 if problem.sense == "minimise" else -1.0
    return None if bound is None else max(0.0, sign * (objective - bound)) / max(abs(objective), 1.0)


def _certifies(problem: OptimisationProblem, x: Floats | None, bound: float | None) -> bool:
    if x is None or bound is None or not math.isfinite(problem.value(x)):
        return False
    gap = _gap(problem, problem.value(x), bound)
    return gap is not None and gap <= CERTIFIED and problem.violations(x).largest <= CERTIFIED


def _join(problem: OptimisationProblem, points: Sequence[Sequence[float] | None]) -> Floats | None:
    """Return the joined points of the parts, clipped to the bounds, which solvers may slightly exceed."""
    x = np.zeros(problem.n)
    groups_of_variables = groups(problem)
    if len(points) < len(groups_of_variables):
        return None
    for group, point in zip(groups_of_variables, points, strict=True):
        if point is None:
            return None
        x[group] = point
    x[list(problem.integers)] = np.round(x[list(problem.integers)])
    low, high = problem.box
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def groups(problem: OptimisationProblem) -> list[list[int]]:
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


def components(problem: OptimisationProblem) -> list[OptimisationProblem]:
    """Return the problem as independent problems; none of them has the constant of the objective."""
    return [_component(problem, group, number) for number, group in enumerate(groups(problem))]


def _component(problem: OptimisationProblem, group: list[int], number: int) -> OptimisationProblem:
    places = {i: place for place, i in enumerate(group)}
    rows = [row for row in problem.constraints if all(i in places for part in row.body.groups() for i in part)]
    return OptimisationProblem(
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
        formulas=tuple(
            msgspec.structs.replace(f, text=f.written(lambda i: f"x[{places[i]}]"))
            for f in body.formulas
            if all(i in places for i in f.variables)
        ),
    )


def check_solved(baseline: Baseline) -> None:
    """Raise FairtrialError if a problem has no baseline solution, since a suite cannot use it."""
    if baseline.status == "unknown":
        raise FairtrialError(
            f"{baseline.problem}: no optimum was found within {baseline.time_limit:g} s, and no feasible point; try a "
            "longer time limit"
        )
