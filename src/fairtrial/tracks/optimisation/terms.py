"""The kinds of terms in a sum: what is linear, quadratic, polynomial, the square of a linear sum or a cosine has its
own kind, with text, certificates and norms; the rest becomes formulas."""

from __future__ import annotations

import math
from typing import Any

from fairtrial.tracks.optimisation.algebra import MAX_DEGREE, MAX_TERMS, Atom, Key, Sum, added, key_text
from fairtrial.tracks.optimisation.problem import Expression, Formula, Monomial, Square, Wave


def as_expression(total: Sum) -> Expression:
    """Return a sum as data of a problem."""
    plain = Sum({})
    for key, weight in total.terms.items():
        plain = added(plain, _expanded(key, weight))
    constant, linear, quadratic, squares, monomials, waves, formulas = 0.0, [], [], [], [], [], []
    for key, weight in plain.terms.items():
        if not key:
            constant = weight
        elif square := _square(key, weight):
            squares.append(square)
        elif wave := _wave(key, weight):
            waves.append(wave)
        elif not all(isinstance(f, int) and p > 0 and float(p).is_integer() for f, p in key):
            formulas.append(Formula(weight, key_text(key)))
        elif (degree := sum(p for _, p in key)) == 1:
            linear.append((key[0][0], weight))
        elif degree == 2:
            quadratic.append((key[0][0], key[-1][0], weight))
        else:
            monomials.append(Monomial(weight, tuple((f, int(p)) for f, p in key)))
    return Expression(
        constant=constant,
        linear=tuple(linear),
        quadratic=tuple(quadratic),
        squares=tuple(squares),
        monomials=tuple(monomials),
        waves=tuple(waves),
        formulas=tuple(formulas),
    )


def _expanded(key: Key, weight: float) -> Sum:
    """Multiply out brackets around polynomials, unless the term is the square of a linear sum."""
    if _square(key, weight) or not any(_is_bracket(f, p) for f, p in key):
        return Sum({key: weight})
    if not all(isinstance(f, int) or _is_bracket(f, p) for f, p in key):
        return Sum({key: weight})
    size = math.prod(len(f.inside.terms) ** p for f, p in key if isinstance(f, Atom))
    if size > MAX_TERMS or sum(p for f, p in key if isinstance(f, Atom)) > MAX_DEGREE:
        return Sum({key: weight})
    total = Sum({tuple((f, p) for f, p in key if isinstance(f, int)): weight})
    for factor, power in key:
        for _ in range(int(power) if isinstance(factor, Atom) else 0):
            total = total * factor.inside
    return total


def _is_bracket(factor: Any, power: float) -> bool:
    whole = power > 0 and float(power).is_integer()
    return isinstance(factor, Atom) and not factor.function and factor.inside.is_polynomial and whole


def _square(key: Key, weight: float) -> Square | None:
    if len(key) != 1 or key[0][1] != 2 or not isinstance(key[0][0], Atom):
        return None
    atom = key[0][0]
    if atom.function or not atom.inside.is_linear:
        return None
    linear = tuple((k[0][0], c) for k, c in atom.inside.terms.items() if k)
    return Square(weight, linear, atom.inside.terms.get((), 0.0))


def _wave(key: Key, weight: float) -> Wave | None:
    if len(key) != 1 or key[0][1] != 1 or not isinstance(key[0][0], Atom) or key[0][0].function != "cos":
        return None
    inside = key[0][0].inside
    variables = [(k[0][0], c) for k, c in inside.terms.items() if k]
    if len(variables) != 1 or not inside.is_linear:
        return None
    return Wave(weight, *variables[0], inside.terms.get((), 0.0))
