"""Random feasible points of a problem, which define "no better than chance"."""

from __future__ import annotations

import math
import time

import msgspec
import numpy as np

from fairtrial.tracks.optimisation.problem import Expression, Floats, OptimisationProblem
from fairtrial.tracks.optimisation.solve import solve

_POINTS = 200
_TRIES = 4000
_AT_ONCE = 400
_CORNERS = 20
_SEED = 20
_ISOTROPIC = 0.3  # share of steps in any direction
_WHOLE = 2**62  # whole numbers beyond cannot be drawn


def random_objective(problem: OptimisationProblem, time_limit: float = 60.0) -> float | None:
    """Return the mean objective of seeded random feasible points; None if none was found."""
    deadline = time.monotonic() + time_limit
    finite: list[float] = []
    for point in random_points(problem, 0.8 * time_limit):
        finite += [value] if math.isfinite(value := problem.value(point)) else []
        if time.monotonic() > deadline:
            break
    return float(np.mean(finite)) if finite else None


def random_points(problem: OptimisationProblem, time_limit: float = 60.0) -> list[Floats]:
    """Return points from the whole box if enough of them are feasible; else from a random walk inside linear
    constraints; else the corners that a solver finds in random directions."""
    rng = np.random.default_rng(_SEED)
    deadline = time.monotonic() + time_limit
    low, high = finite_box(problem, deadline)
    problem = msgspec.structs.replace(problem, lower=tuple(low.tolist()), upper=tuple(high.tolist()))
    points = _rejection_sample(problem, rng, deadline)
    if len(points) >= _POINTS // 4:
        return points
    if all(row.body.is_linear for row in problem.constraints) and not problem.integers:
        return _random_walk(problem, rng, deadline)
    return _corners(problem, rng, deadline, _CORNERS)


def finite_box(problem: OptimisationProblem, deadline: float = math.inf) -> tuple[Floats, Floats]:
    """Return the bounds, with finite ones where a variable has none.

    These are what the linear constraints imply, found by linear programmes; where they imply nothing, ten times the
    largest number among bounds and right-hand sides, at least 100.
    """
    low, high = (side.copy() for side in problem.box)
    if np.isfinite(low).all() and np.isfinite(high).all():
        return low, high
    rows = tuple(row for row in problem.constraints if row.body.is_linear)
    numbers = [abs(row.bound) for row in problem.constraints] + [abs(b) for b in (*low, *high) if math.isfinite(b)]
    far = 10 * max([10.0, *numbers])
    for side, sense in ((low, "minimise"), (high, "maximise")):
        for i in np.flatnonzero(np.isinf(side)):
            goal = Expression(linear=((int(i), 1.0),))
            linear = msgspec.structs.replace(problem, objective=goal, sense=sense, constraints=rows, integers=())
            left = deadline - time.monotonic()
            end = solve(linear, min(5.0, left)) if rows and left > 0 else None
            edge = float(end.x[i]) if end is not None and end.x is not None else math.inf
            side[i] = edge if abs(edge) <= far * 100 else (-far if sense == "minimise" else far)
    # A side that only the constraints bound may lie beyond the other one.
    return np.minimum(low, high), np.maximum(low, high)


def _rejection_sample(problem: OptimisationProblem, rng: np.random.Generator, deadline: float) -> list[Floats]:
    constraints = list(problem.constraints)
    points: list[Floats] = []
    for _ in range(_TRIES // _AT_ONCE):
        for x in _plausible(problem, _draw(problem, rng)):
            if time.monotonic() > deadline:
                return points
            violated = next((place for place, row in enumerate(constraints) if row.violation(x) > 1e-9), None)
            if violated is not None:
                constraints.insert(0, constraints.pop(violated))  # the next point probably violates it too
                continue
            points.append(x)
            if len(points) == _POINTS:
                return points
    return points


def _draw(problem: OptimisationProblem, rng: np.random.Generator) -> Floats:
    """Return random points of the box, one a row."""
    low, high = problem.box
    integers = list(problem.integers)
    if not integers:
        return rng.uniform(low, high, (_AT_ONCE, problem.n))
    ends = np.ceil(low[integers]), np.floor(high[integers])
    first, last = (np.clip(end, -_WHOLE, _WHOLE).astype(np.int64) for end in ends)
    last = np.maximum(last, first) + 1
    points = np.empty((_AT_ONCE, problem.n))
    for x in points:
        x[:] = rng.uniform(low, high)
        x[integers] = rng.integers(first, last)
    return points


def _plausible(problem: OptimisationProblem, points: Floats) -> Floats:
    """Return the points that violate no linear constraint by much, which is checked for all at once."""
    rows = [row for row in problem.constraints if row.body.is_linear]
    matrix, low, high = _rows(msgspec.structs.replace(problem, constraints=tuple(rows)))
    count = len(rows)
    slack = 1e-8 * np.array([row.norm for row in rows]) * max(1.0, float(np.abs(points).max()))
    at = points @ matrix[:count].T
    return points[((at >= low[:count] - slack) & (at <= high[:count] + slack)).all(axis=1)]


def _random_walk(problem: OptimisationProblem, rng: np.random.Generator, deadline: float) -> list[Floats]:
    """Hit and run: from a point inside, move in a random direction to a random feasible position on that line.

    Directions connect corners of the region, so that thin and high-dimensional regions are crossed too; they do not
    depend on the current position, which keeps the sampling unbiased.
    """
    matrix, low, high = _rows(problem)
    corners = _corners(problem, rng, deadline, min(60, 2 * problem.n))
    if len(corners) < 2:
        return corners
    x = np.mean(corners, axis=0)  # the mean of corners lies inside
    free = _null_space(matrix[low == high])
    points = []
    pause = max(50, 4 * problem.n)
    for step in range(-10 * pause, pause * _POINTS):
        if rng.random() < _ISOTROPIC:
            direction = free @ rng.normal(size=free.shape[1])
        else:
            i, j = rng.choice(len(corners), 2, replace=False)
            direction = corners[i] - corners[j]
        moves, at = matrix @ direction, matrix @ x
        relevant = np.abs(moves) > 1e-10 * max(1.0, float(np.abs(direction).max()))
        moves = moves[relevant]
        one, other = (low - at)[relevant] / moves, (high - at)[relevant] / moves
        first = float(np.minimum(one, other).max(initial=-1e6))
        last = float(np.maximum(one, other).min(initial=1e6))
        if last > first:
            x = x + direction * rng.uniform(min(first, 0.0), max(last, 0.0))
        if step >= 0 and step % pause == 0:
            points.append(x.copy())
            if time.monotonic() > deadline:
                break
    return points


def _rows(problem: OptimisationProblem) -> tuple[Floats, Floats, Floats]:
    """Return every linear constraint and bound as low ≤ row·x ≤ high."""
    rows = np.zeros((len(problem.constraints), problem.n))
    low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    for number, row in enumerate(problem.constraints):
        for i, c in row.body.linear:
            rows[number, i] += c
        bound = row.bound - row.body.constant
        low[number] = bound if row.relation in (">=", "==") else -np.inf
        high[number] = bound if row.relation in ("<=", "==") else np.inf
    box_low, box_high = problem.box
    return np.vstack([rows, np.eye(problem.n)]), np.r_[low, box_low], np.r_[high, box_high]


def _null_space(matrix: Floats) -> Floats:
    if not len(matrix):
        return np.eye(matrix.shape[1])
    _, sizes, directions = np.linalg.svd(matrix)
    rank = int(np.sum(sizes > 1e-10 * max(1.0, float(sizes.max(initial=0.0)))))
    return np.asarray(directions[rank:].T, dtype=np.float64)


def _corners(problem: OptimisationProblem, rng: np.random.Generator, deadline: float, count: int) -> list[Floats]:
    """Return corners of the feasible region: the furthest points in random directions, found by a solver."""
    corners: list[Floats] = []
    for _ in range(count):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        direction = Expression(linear=tuple((i, float(c)) for i, c in enumerate(rng.normal(size=problem.n))))
        directed = msgspec.structs.replace(problem, objective=direction, sense="minimise")
        point = solve(directed, min(20.0, left)).x
        if point is not None:
            corners.append(np.asarray(point))
    return corners
