"""Local search from many starting points, for problems that no solver certifies: the best point that is known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtrial.core.errors import NotInstalledError
from fairtrial.optim.problem import Constraint, Floats, Problem
from fairtrial.optim.sample import finite_box

_STARTS = 60
_SEED = 21
_FEASIBLE = 1e-8


def search(problem: Problem, time_limit: float, known: Sequence[float] | None = None) -> Floats | None:
    """Return the best feasible point found; it also starts from a known point, and never returns a worse one."""
    deadline = time.monotonic() + time_limit
    rng = np.random.default_rng(_SEED)
    low, high = finite_box(problem)
    best = None if known is None else np.asarray(known, dtype=np.float64)
    starts = [] if best is None else [best]
    for number in range(_STARTS):
        start = starts[number] if number < len(starts) else rng.uniform(low, high)
        point = _improved(problem, _local(problem, _rounded(problem, start)))
        if _is_feasible(problem, point) and (best is None or problem.better(problem.value(point), problem.value(best))):
            best = point
        if time.monotonic() > deadline:
            break
    return best


def _rounded(problem: Problem, x: Floats) -> Floats:
    low, high = problem.box
    point = np.clip(x, low, high)
    integers = list(problem.integers)
    point[integers] = np.clip(np.round(point[integers]), np.ceil(low[integers]), np.floor(high[integers]))
    return np.asarray(point, dtype=np.float64)


def _is_feasible(problem: Problem, x: Floats) -> bool:
    return bool(np.isfinite(problem.value(x))) and problem.violations(x).largest <= _FEASIBLE


def _local(problem: Problem, start: Floats) -> Floats:
    """Return the end of a sequential quadratic programme over the variables that are not whole numbers."""
    try:
        from scipy.optimize import minimize  # type: ignore[import-untyped]
    except ImportError:
        raise NotInstalledError("local search", "optim") from None
    free = [i for i in range(problem.n) if i not in set(problem.integers)]
    if not free:
        return start
    low, high = problem.box
    sign = 1.0 if problem.sense == "minimise" else -1.0

    def whole(part: Floats) -> Floats:
        x = start.copy()
        x[free] = part
        return x

    with np.errstate(all="ignore"):
        result = minimize(
            lambda part: sign * problem.value(whole(part)),
            start[free],
            jac=lambda part: sign * problem.objective.gradient(whole(part))[free],
            method="SLSQP",
            bounds=list(zip(low[free], high[free], strict=True)),
            constraints=[_as_scipy(row, whole, free) for row in problem.constraints],
            options={"maxiter": 200, "ftol": 1e-12},
        )
    return _rounded(problem, whole(np.asarray(result.x, dtype=np.float64)))


def _as_scipy(row: Constraint, whole: Any, free: list[int]) -> dict[str, Any]:
    sign = -1.0 if row.relation == "<=" else 1.0
    return {
        "type": "eq" if row.relation == "==" else "ineq",
        "fun": lambda part: sign * (row.body.value(whole(part)) - row.bound) / row.norm,
        "jac": lambda part: sign * row.body.gradient(whole(part))[free] / row.norm,
    }


def _improved(problem: Problem, x: Floats) -> Floats:
    """Return a point with better whole numbers: one step up or down at a time, while that helps."""
    changed = bool(problem.integers) and _is_feasible(problem, x)
    while changed:
        changed = False
        for i in problem.integers:
            for step in (-1.0, 1.0):
                other = x.copy()
                other[i] += step
                if _is_feasible(problem, other) and problem.better(problem.value(other), problem.value(x)):
                    x, changed = other, True
    return x
