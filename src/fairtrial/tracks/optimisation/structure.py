"""The structure of a problem, which decides on its solver and its difficulty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairtrial.tracks.optimisation.problem import Constraint, Expression, Floats

_DENSE = 2000  # variables whose matrix is looked at


def is_convex(objective: Expression, sense: str, constraints: Sequence[Constraint], integers: Sequence[int]) -> bool:
    """Return whether a problem is provably convex: a convex quadratic objective, linear constraints, no integers."""
    if integers or not objective.is_quadratic or not all(row.body.is_linear for row in constraints):
        return False
    if objective.is_linear:
        return True
    matrix = _hessian(objective)
    if matrix is None:
        return False
    return _is_semidefinite(matrix if sense == "minimise" else -matrix)


def _is_semidefinite(matrix: Floats) -> bool:
    """Return whether no eigenvalue is negative, up to rounding; eigenvalues themselves would take ten times as long."""
    diagonal = np.diagonal(matrix)
    if (diagonal < 0).any() or ((diagonal == 0) & matrix.any(axis=0)).any():
        return False
    rounding = 1e-10 * max(1e-300, float(np.abs(matrix).sum(axis=0).max()))  # no eigenvalue is larger than that sum
    try:
        np.linalg.cholesky(matrix + rounding * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def _hessian(objective: Expression) -> Floats | None:
    """Return half the matrix of second derivatives over the variables that occur in it; None if it is too large."""
    variables = sorted({i for i, j, _ in objective.quadratic} | {j for _, j, _ in objective.quadratic})
    variables = sorted({*variables, *(i for square in objective.squares for i, _ in square.linear)})
    if len(variables) > _DENSE:
        return None
    places = {i: place for place, i in enumerate(variables)}
    matrix = np.zeros((len(places), len(places)))
    for i, j, q in objective.quadratic:
        matrix[places[i], places[j]] += q / 2
        matrix[places[j], places[i]] += q / 2
    for square in objective.squares:
        row = np.zeros(len(places))
        for i, c in square.linear:
            row[places[i]] += c
        matrix += square.weight * np.outer(row, row)
    return matrix


def kind(objective: Expression, constraints: Sequence[Constraint], integers: Sequence[int]) -> str:
    """Return the structure in words: linear, quadratic, polynomial or general; mixed-integer or not."""
    parts = [objective, *(row.body for row in constraints)]
    if all(part.is_linear for part in parts):
        word = "linear"
    elif all(part.is_quadratic for part in parts):
        word = "quadratic"
    elif not any(part.waves or part.formulas for part in parts):
        word = "polynomial"
    else:
        word = "non-linear"
    return f"mixed-integer {word}" if integers else word
