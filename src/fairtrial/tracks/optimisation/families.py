"""Families of problems, generated from seeds: the same seed gives the same problem on every machine.

Coefficients are rounded, so that the text of a problem is short and exact.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.problem import Constraint, Expression, Monomial, OptimisationProblem, Square, Wave

Rng = np.random.Generator
Row = tuple[tuple[int, float], ...]
_TWO_PI = 6.283185  # as written in the texts


def _rng(family: str, n: int, seed: int) -> Rng:
    return np.random.default_rng([zlib.crc32(family.encode()), n, seed])


def _box(n: int, low: float, high: float) -> dict[str, tuple[float, ...]]:
    return {"lower": (float(low),) * n, "upper": (float(high),) * n}


def _uniform(rng: Rng, low: float, high: float, digits: int = 1) -> float:
    return round(float(rng.uniform(low, high)), digits)


def _row(rng: Rng, n: int, entries: int, digits: int = 1) -> Row:
    """Return a sparse row with non-zero coefficients."""
    chosen = sorted(rng.choice(n, min(entries, n), replace=False))
    return tuple((int(i), _uniform(rng, 0.5, 3, digits) * float(rng.choice([-1, 1]))) for i in chosen)


def _at(row: Row, x: Sequence[float]) -> float:
    return round(sum(c * x[i] for i, c in row), 6)


def _point(rng: Rng, n: int, low: float, high: float) -> list[float]:
    return [_uniform(rng, low, high) for _ in range(n)]


def _ones(n: int) -> Row:
    return tuple((i, 1.0) for i in range(n))


def _linear(row: Row, relation: str, bound: float) -> Constraint:
    return Constraint(body=Expression(linear=row), relation=relation, bound=float(bound))  # type: ignore[arg-type]


def original(n: int, seed: int) -> OptimisationProblem:
    """Minimise Σx² with Σx ≥ 0 and −10 ≤ x ≤ 10; seed 2 writes the constraint 20 times."""
    rows = (_linear(_ones(n), ">=", 0.0),) * (20 if seed == 2 else 1)
    objective = Expression(quadratic=tuple((i, i, 1.0) for i in range(n)))
    return _problem("original", n, seed, objective, rows, **_box(n, -10, 10))


def convex_qp(n: int, seed: int) -> OptimisationProblem:
    """A convex quadratic with sparse inequalities."""
    rng = _rng("convex_qp", n, seed)
    inside = _point(rng, n, -3, 3)
    objective = Expression(
        linear=tuple((i, _uniform(rng, -8, 8)) for i in range(n)),
        quadratic=tuple((i, i, _uniform(rng, 0.5, 2)) for i in range(n)),
        squares=tuple(Square(1.0, _row(rng, n, 5)) for _ in range(3)),
    )
    rows = []
    for _ in range(max(2, n // 5)):
        row = _row(rng, n, 4)
        rows.append(_linear(row, "<=", round(_at(row, inside) + _uniform(rng, 0, 1), 2)))
    return _problem("convex_qp", n, seed, objective, rows, **_box(n, -5, 5))


def sparse_equality_qp(n: int, seed: int) -> OptimisationProblem:
    """A chain of coupled variables with sparse equalities."""
    rng = _rng("sparse_equality_qp", n, seed)
    inside = _point(rng, n, -2, 2)
    objective = Expression(
        linear=tuple((i, _uniform(rng, -4, 4)) for i in range(n)),
        quadratic=(
            *((i, i, _uniform(rng, 1, 3)) for i in range(n)),
            *((i, i + 1, _uniform(rng, -0.9, 0.9)) for i in range(n - 1)),
        ),
    )
    rows = []
    for start in range(0, n - 2, 5):  # disjoint variables, so that the rows are independent
        row = tuple((start + k, c) for k, (_, c) in enumerate(_row(rng, n, 3)))
        rows.append(_linear(row, "==", _at(row, inside)))
    return _problem("sparse_equality_qp", n, seed, objective, rows, **_box(n, -5, 5))


def portfolio(n: int, seed: int) -> OptimisationProblem:
    """Risk of a few factors against return, on the simplex, with a cap on every share."""
    rng = _rng("portfolio", n, seed)
    factors = [tuple((i, _uniform(rng, -1, 2, 2)) for i in range(n)) for _ in range(2)]
    objective = Expression(
        linear=tuple((i, -_uniform(rng, 0.01, 0.3, 2)) for i in range(n)),
        quadratic=tuple((i, i, _uniform(rng, 0.1, 1, 2)) for i in range(n)),
        squares=tuple(Square(1.0, row) for row in factors),
    )
    return _problem("portfolio", n, seed, objective, [_linear(_ones(n), "==", 1.0)], **_box(n, 0, 0.4))


def least_squares(n: int, seed: int) -> OptimisationProblem:
    """Least squares with bounds; the unbounded solution lies partly outside."""
    rng = _rng("least_squares", n, seed)
    squares = []
    for number in range(n):
        row = _row(rng, n, 3)
        row = row if any(i == number for i, _ in row) else ((number, 2.0), *row)
        squares.append(Square(1.0, tuple(sorted(row)), -_uniform(rng, -4, 4)))
    return _problem("least_squares", n, seed, Expression(squares=tuple(squares)), [], **_box(n, -1, 1))


def box_qp(n: int, seed: int) -> OptimisationProblem:
    """An indefinite quadratic in a box: dense for n = 10, a band of neighbours where n is larger."""
    rng = _rng("box_qp", n, seed)
    reach = n if n <= 10 else 2
    pairs = [(i, j) for i in range(n) for j in range(i + 1, min(n, i + reach + 1)) if n > 10 or rng.random() < 0.6]
    objective = Expression(
        linear=tuple((i, _uniform(rng, -5, 5)) for i in range(n)),
        quadratic=(
            *((i, i, _uniform(rng, -3, 3)) for i in range(n)),
            *((i, j, _uniform(rng, -5, 5)) for i, j in pairs),
        ),
    )
    return _problem("box_qp", n, seed, objective, [], convex=False, **_box(n, -1, 1))


def bilinear(n: int, seed: int) -> OptimisationProblem:
    """Blending with pools: blocks of 5 variables (two inputs, two outputs, a quality), and one common supply."""
    if n % 5:
        raise FairtrialError(f"the family bilinear comes in blocks of 5 variables: {n} is not a multiple of 5")
    rng = _rng("bilinear", n, seed)
    linear: list[tuple[int, float]] = []
    rows = []
    upper = []
    for first in range(0, n, 5):
        a, b, x, y, p = range(first, first + 5)
        linear += [
            (a, _uniform(rng, 4, 7)),
            (b, _uniform(rng, 12, 17)),
            (x, -_uniform(rng, 8, 12)),
            (y, -_uniform(rng, 10, 16)),
        ]
        rows += [
            _linear(((a, 1.0), (b, 1.0), (x, -1.0), (y, -1.0)), "==", 0.0),
            Constraint(
                body=Expression(linear=((a, 3.0), (b, 1.0)), quadratic=((x, p, -1.0), (y, p, -1.0))),
                relation="==",
                bound=0.0,
            ),
            Constraint(
                body=Expression(linear=((x, -_uniform(rng, 1.6, 2.4)),), quadratic=((x, p, 1.0),)),
                relation="<=",
                bound=0.0,
            ),
            Constraint(
                body=Expression(linear=((y, -_uniform(rng, 1.2, 1.8)),), quadratic=((y, p, 1.0),)),
                relation="<=",
                bound=0.0,
            ),
        ]
        upper += [30.0, 30.0, _uniform(rng, 5, 12, 0), _uniform(rng, 8, 20, 0), 3.0]
    lower = tuple(1.0 if i % 5 == 4 else 0.0 for i in range(n))
    supply = tuple((first + 1, 1.0) for first in range(0, n, 5))
    rows.append(_linear(supply, "<=", float(2 * n // 5 + 4)))
    objective = Expression(linear=tuple(linear))
    return _problem("bilinear", n, seed, objective, rows, convex=False, lower=lower, upper=tuple(upper))


def rosenbrock(n: int, seed: int) -> OptimisationProblem:
    """The curved valley: Σ 100(x_{i+1} − x_i²)² + (1 − x_i)², written out as monomials."""
    monomials = []
    for i, j in pairwise(range(n)):
        monomials += [Monomial(100.0, ((i, 4),)), Monomial(-200.0, ((i, 2), (j, 1)))]
    objective = Expression(
        constant=float(n - 1),
        linear=tuple((i, -2.0) for i in range(n - 1)),
        quadratic=tuple((i, i, 1.0 if i == 0 else 100.0 if i == n - 1 else 101.0) for i in range(n)),
        monomials=tuple(monomials),
    )
    return _problem("rosenbrock", n, seed, objective, [], convex=False, floor=0.0, **_box(n, -2, 2))


def trigonometric(n: int, seed: int) -> OptimisationProblem:
    """Many local minima: a bowl with waves that have other centres."""
    rng = _rng("trigonometric", n, seed)
    middles = [_uniform(rng, -2, 2) for _ in range(n)]
    shifts = [_uniform(rng, -1.5, 1.5) for _ in range(n)]
    objective = Expression(
        linear=tuple((i, round(-2 * middle, 1)) for i, middle in enumerate(middles) if middle),
        quadratic=tuple((i, i, 1.0) for i in range(n)),
        waves=tuple(Wave(-5.0, i, _TWO_PI, shift) for i, shift in enumerate(shifts)),
    )
    return _problem("trigonometric", n, seed, objective, [], convex=False, **_box(n, -5, 5))


def tight(n: int, seed: int) -> OptimisationProblem:
    """A convex quadratic in slices one hundredth thick."""
    rng = _rng("tight", n, seed)
    inside = _point(rng, n, -1, 1)
    rows = []
    for _ in range(max(3, n // 5)):
        row = _row(rng, n, 6)
        middle = _at(row, inside)
        rows += [_linear(row, ">=", round(middle - 0.005, 3)), _linear(row, "<=", round(middle + 0.005, 3))]
    objective = Expression(
        linear=tuple((i, _uniform(rng, -3, 3)) for i in range(n)), quadratic=tuple((i, i, 1.0) for i in range(n))
    )
    return _problem("tight", n, seed, objective, rows, tight=True, **_box(n, -4, 4))


def mixed_integer(n: int, seed: int) -> OptimisationProblem:
    """A packing problem: whole numbers of every item, two limits."""
    rng = _rng("mixed_integer", n, seed)
    values = tuple((i, float(rng.integers(5, 40))) for i in range(n))
    rows = []
    for _ in range(2):
        weights = tuple((i, float(rng.integers(3, 25))) for i in range(n))
        rows.append(_linear(weights, "<=", round(0.8 * sum(c for _, c in weights))))
    objective = Expression(linear=values)
    return _problem(
        "mixed_integer",
        n,
        seed,
        objective,
        rows,
        convex=False,
        sense="maximise",
        integers=tuple(range(n)),
        **_box(n, 0, 3),
    )


def infeasible(n: int, seed: int) -> OptimisationProblem:
    """A simple quadratic with contradictory constraints: three rows whose sum cannot be satisfied."""
    rng = _rng("infeasible", n, seed)
    inside = _point(rng, n, -2, 2)
    first, second = dict(_row(rng, n, 5)), dict(_row(rng, n, 5))
    both = {i: round(first.get(i, 0.0) + second.get(i, 0.0), 1) for i in sorted({*first, *second})}
    rows = [_linear(tuple(row.items()), "<=", _at(tuple(row.items()), inside)) for row in (first, second)]
    total = tuple((i, c) for i, c in both.items() if c)
    rows.append(_linear(total, ">=", round(rows[0].bound + rows[1].bound + 0.5, 2)))
    for _ in range(max(1, n // 10)):
        row = _row(rng, n, 4)
        rows.append(_linear(row, "<=", round(_at(row, inside) + 1, 2)))
    rows.insert(1, rows.pop())
    objective = Expression(quadratic=tuple((i, i, 1.0) for i in range(n)))
    return _problem("infeasible", n, seed, objective, rows, **_box(n, -5, 5))


FAMILIES: dict[str, Callable[[int, int], OptimisationProblem]] = {
    function.__name__: function
    for function in (
        original,
        convex_qp,
        sparse_equality_qp,
        portfolio,
        least_squares,
        box_qp,
        bilinear,
        rosenbrock,
        trigonometric,
        tight,
        mixed_integer,
        infeasible,
    )
}

# (family, n, seed) of the suite that ships with its baselines: 30 instances.
DEFAULT = (
    *(("original", n, 1) for n in (10, 50, 100)),
    ("original", 100, 2),
    *(
        (family, n, 1)
        for family in ("convex_qp", "sparse_equality_qp", "portfolio", "least_squares")
        for n in (10, 50, 100)
    ),
    *((family, n, 1) for family in ("box_qp", "trigonometric") for n in (10, 50, 100)),
    *(("bilinear", n, 1) for n in (10, 50)),
    ("rosenbrock", 10, 1),
    ("tight", 10, 1),
    *(("mixed_integer", n, 1) for n in (10, 50)),
    *(("infeasible", n, 1) for n in (10, 50)),
)


_SMALLEST = {"portfolio": 3, "sparse_equality_qp": 3, "bilinear": 5}  # variables at least; 2 if it is not named
# Small instances for small models; their baselines ship too.
SMALL = tuple((family, n, 1) for n in (2, 5) for family in FAMILIES if n >= _SMALLEST.get(family, 2))
FIXED = {"original": (1, 2), "rosenbrock": (1,)}  # families that are not random, and their seeds


def can_make(family: str, n: int, seed: int) -> bool:
    """Return whether such an instance exists and is not a duplicate of another under a new name."""
    if family not in FIXED:
        return n >= _SMALLEST.get(family, 2) and (family != "bilinear" or n % 5 == 0)
    return seed in FIXED[family]


def make(family: str, n: int, seed: int = 1) -> OptimisationProblem:
    """Return one instance."""
    if family not in FAMILIES:
        raise FairtrialError(f"unknown family `{family}`; choose one of {', '.join(FAMILIES)}")
    if n < (smallest := _SMALLEST.get(family, 2)):
        raise FairtrialError(f"a problem of the family {family} needs at least {smallest} variables")
    if family in FIXED and seed not in FIXED[family]:
        raise FairtrialError(f"the family {family} has no seed {seed}: its problems are not random")
    return FAMILIES[family](n, seed)


def _problem(
    family: str,
    n: int,
    seed: int,
    objective: Expression,
    constraints: Sequence[Constraint],
    **more: object,
) -> OptimisationProblem:
    name = family if seed == 1 else f"{family}-s{seed}"
    return OptimisationProblem(
        id=f"{name}-{n}",
        family=family,
        n=n,
        seed=seed,
        objective=objective,
        constraints=tuple(constraints),
        **more,  # type: ignore[arg-type]
    )
