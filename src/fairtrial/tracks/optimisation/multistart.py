"""Local search from many starting points, for problems that no solver certifies: the best point that is known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from threading import Thread
from typing import Any

import numpy as np

from fairtrial.core.errors import NotInstalledError
from fairtrial.tracks.optimisation.problem import Constraint, Floats, OptimisationProblem
from fairtrial.tracks.optimisation.sample import finite_box

_STARTS = 60
_SEED = 21
_FEASIBLE = 1e-8
_FAR = 1e12
_TRIES = 20


class _SearchOverError(Exception):
    """The time of a search is up."""


Found = Callable[[Floats], None]


def search(
    problem: OptimisationProblem,
    time_limit: float,
    known: Sequence[float] | Floats | None = None,
    found: Found | None = None,
) -> Floats | None:
    """Return the best feasible point found; it also starts from a known point, and never returns a worse one.

    Args:
        found: Called with each point that is better than those before.
    """
    deadline = time.monotonic() + time_limit
    best = None if known is None else np.asarray(known, dtype=np.float64)
    for point in _starts(problem, best, deadline):
        try:
            for better in _climb(problem, _rounded(problem, point), deadline):
                if best is None or not _is_feasible(problem, best) or _is_better(problem, better, best):
                    best = better
                    if found:
                        found(better)
        except _SearchOverError:
            break
    return best


def first_point(problem: OptimisationProblem, seconds: float) -> Floats | None:
    """Return a feasible point near 0, if a few tries find one: better than none if a solver finds none in time."""
    deadline = time.monotonic() + seconds
    low, high = problem.box
    middle = np.clip(0.0, low, high)
    rng = np.random.default_rng(_SEED)
    around = rng.uniform(np.maximum(low, middle - 10), np.minimum(high, middle + 10), (_TRIES, problem.n))
    starts = (_rounded(problem, point) for point in (middle, *around))
    return next((point for point in starts if time.monotonic() < deadline and _is_feasible(problem, point)), None)


def far_out(problem: OptimisationProblem, start: Floats, seconds: float) -> Floats | None:
    """Return a point far out, if steps along a single variable without a bound lead to ever larger objectives.

    It costs little, and saves solvers from looking for an optimum where there is none.
    """
    deadline = time.monotonic() + seconds
    low, high = problem.box
    for i, way in product(range(problem.n), (-1.0, 1.0)):
        if math.isfinite(high[i] if way > 0 else low[i]) or time.monotonic() > deadline:
            continue
        x, step = start, way
        while (other := _moved(problem, x, i, step)) is not None:
            x, step = other, 2 * step
        if abs(x[i]) > _FAR and abs(problem.value(x)) > _FAR * (1 + abs(problem.value(start))):
            return x
    return None


def _starts(problem: OptimisationProblem, known: Floats | None, deadline: float) -> Iterator[Floats]:
    """Yield the points to start from: what is known, then points of the box at random."""
    if known is not None:
        yield known
    rng = np.random.default_rng(_SEED)
    low, high = finite_box(problem, deadline)
    for _ in range(_STARTS if known is None else _STARTS - 1):
        yield rng.uniform(low, high)


def _climb(problem: OptimisationProblem, start: Floats, deadline: float) -> Iterator[Floats]:
    if _is_feasible(problem, start):
        yield start
    point = _local(problem, start, deadline)
    if _is_feasible(problem, point):
        yield point
        yield from _improved(problem, point, deadline)


def _is_better(problem: OptimisationProblem, a: Floats, b: Floats) -> bool:
    return problem.better(problem.value(a), problem.value(b))


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _SearchOverError


def _rounded(problem: OptimisationProblem, x: Floats) -> Floats:
    low, high = problem.box
    point = np.clip(x, low, high)
    integers = list(problem.integers)
    point[integers] = np.clip(np.round(point[integers]), np.ceil(low[integers]), np.floor(high[integers]))
    return np.asarray(point, dtype=np.float64)


def _is_feasible(problem: OptimisationProblem, x: Floats) -> bool:
    return bool(np.isfinite(problem.value(x))) and problem.violations(x).largest <= _FEASIBLE


def import_scipy() -> None:
    """Import what a search needs, in a thread: it takes about a second, while solvers work elsewhere."""
    Thread(target=_minimize, name="fairtrial-imports", daemon=True).start()


def _minimize() -> Any:
    try:
        from scipy.optimize import minimize  # type: ignore[import-untyped]
    except ImportError:
        raise NotInstalledError("local search", "optim") from None
    return minimize


def _local(problem: OptimisationProblem, start: Floats, deadline: float) -> Floats:
    """Return the end of a sequential quadratic programme over the variables that are not whole numbers."""
    integers = set(problem.integers)
    free = [i for i in range(problem.n) if i not in integers]
    if not free:
        return start
    low, high = problem.box
    sign = 1.0 if problem.sense == "minimise" else -1.0

    def whole(part: Floats) -> Floats:
        x = start.copy()
        x[free] = part
        return x

    def value(part: Floats) -> float:
        _check_time(deadline)
        return sign * problem.value(whole(part))

    with np.errstate(all="ignore"):
        result = _minimize()(
            value,
            start[free],
            jac=lambda part: sign * problem.objective.gradient(whole(part))[free],
            method="SLSQP",
            bounds=list(zip(low[free], high[free], strict=True)),
            constraints=[_as_scipy(row, whole, free) for row in problem.constraints],
            options={"maxiter": 200, "ftol": 1e-12},
        )
    end = np.asarray(result.x, dtype=np.float64)
    return _rounded(problem, whole(end)) if np.isfinite(end).all() else start


def _as_scipy(row: Constraint, whole: Any, free: list[int]) -> dict[str, Any]:
    sign = -1.0 if row.relation == "<=" else 1.0
    return {
        "type": "eq" if row.relation == "==" else "ineq",
        "fun": lambda part: sign * (row.body.value(whole(part)) - row.bound) / row.norm,
        "jac": lambda part: sign * row.body.gradient(whole(part))[free] / row.norm,
    }


def _improved(problem: OptimisationProblem, x: Floats, deadline: float) -> Iterator[Floats]:
    """Yield points with better whole numbers: a step up or down at a time, twice as far while that helps."""
    changed = bool(problem.integers)
    while changed:
        changed = False
        for i in problem.integers:
            for way in (-1.0, 1.0):
                step = way
                while (other := _moved(problem, x, i, step)) is not None:
                    _check_time(deadline)
                    x, changed, step = other, True, 2 * step
                    yield x


def _moved(problem: OptimisationProblem, x: Floats, i: int, step: float) -> Floats | None:
    """Return a point with another value of a variable, if that is feasible and better."""
    other = x.copy()
    other[i] = float(x[i]) + step
    return other if _is_feasible(problem, other) and _is_better(problem, other, x) else None
