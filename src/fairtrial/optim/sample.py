"""Random feasible points of a problem: what "no better than chance" means for it."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.optim.problem import Expression, Problem
from fairtrial.optim.solve import solve

Floats = NDArray[np.float64]
_POINTS = 200
_TRIES = 4000
_SEED = 20
_ISOTROPIC = 0.3  # of the steps


def random_objective(problem: Problem) -> float | None:
    """The mean objective of seeded random feasible points; None where none was found."""
    points = random_points(problem)
    return float(np.mean([problem.value(point) for point in points])) if len(points) else None


def random_points(problem: Problem) -> list[Floats]:
    """Points from the whole box where many of those are feasible; else a random walk inside linear constraints; else
    random mixtures of what a solver finds in random directions."""
    rng = np.random.default_rng(_SEED)
    found = _rejected(problem, rng)
    if len(found) >= _POINTS // 4:
        return found
    if all(row.body.is_linear for row in problem.constraints) and not problem.integers:
        return _walked(problem, rng)
    return _directed(problem, rng)


def _rejected(problem: Problem, rng: np.random.Generator) -> list[Floats]:
    low, high = problem.box
    whole = list(problem.integers)
    found = []
    for _ in range(_TRIES):
        x = rng.uniform(low, high)
        x[whole] = rng.integers(low[whole].astype(int), high[whole].astype(int) + 1)
        if problem.violations(x).largest <= 1e-9:
            found.append(x)
            if len(found) == _POINTS:
                break
    return found


def _walked(problem: Problem, rng: np.random.Generator) -> list[Floats]:
    """Hit and run: from a point inside, in a random direction, to a random place on the line that is feasible.

    Directions are those between corners of the region, so that thin and high-dimensional ones are crossed too; they do
    not depend on where the walk is, which keeps it fair.
    """
    matrix, low, high = _rows(problem)
    corners = _directed(problem, rng, count=min(60, 2 * problem.n))
    if len(corners) < 2:
        return corners
    x = np.mean(corners, axis=0)  # a mixture of corners lies inside
    free = _null_space(matrix[low == high])
    found = []
    pause = max(50, 4 * problem.n)
    for step in range(-10 * pause, pause * _POINTS):
        if rng.random() < _ISOTROPIC:
            direction = free @ rng.normal(size=free.shape[1])
        else:
            one, other = rng.choice(len(corners), 2, replace=False)
            direction = corners[one] - corners[other]
        moves, at = matrix @ direction, matrix @ x
        sure = np.abs(moves) > 1e-10 * max(1.0, float(np.abs(direction).max()))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort(np.stack([(low - at)[sure] / moves[sure], (high - at)[sure] / moves[sure]]), axis=0)
        first, last = float(ends[0].max(initial=-1e6)), float(ends[1].min(initial=1e6))
        if last > first:
            x = x + direction * rng.uniform(min(first, 0.0), max(last, 0.0))
        if step >= 0 and step % pause == 0:
            found.append(x.copy())
    return found


def _rows(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Every linear constraint and bound as low ≤ row·x ≤ high."""
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


def _directed(problem: Problem, rng: np.random.Generator, count: int = 20) -> list[Floats]:
    """What is furthest in random directions: corners of the feasible region, found by a solver."""
    found: list[Floats] = []
    for _ in range(count):
        direction = Expression(linear=tuple((i, float(c)) for i, c in enumerate(rng.normal(size=problem.n))))
        aside = msgspec.structs.replace(problem, objective=direction, sense="minimise")
        point = solve(aside, 20.0).x
        if point is not None:
            found.append(np.asarray(point))
    return found
