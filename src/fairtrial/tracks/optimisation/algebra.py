"""Sums of terms: what an expression of a problem is, once its names are filled in.

Their terms become those of a problem: what is linear, quadratic, polynomial, the square of a linear sum or a cosine has
its own kind, with text, certificates and norms; the rest becomes formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from fairtrial.tracks.optimisation.arrays import FormulaError, spend
from fairtrial.tracks.optimisation.arrays import power as power_of_number
from fairtrial.tracks.optimisation.formula import FUNCTIONS
from fairtrial.tracks.optimisation.problem import Expression, Formula, Monomial, Square, Wave

_MAX_TERMS = 20_000  # of a product that is multiplied out
_MAX_DEGREE = 8  # of a power that is multiplied out
_COPIED_AT_ONCE = 10  # terms, in the time in which one is multiplied
Key = tuple[tuple[Any, float], ...]  # factors (the index of a variable, or an Atom) with their powers


class Atom:
    """A function of a sum, or a sum in brackets. Equal if it reads the same."""

    def __init__(self, function: str, inside: Sum) -> None:
        self.function, self.inside = function, inside
        spend(len(inside.terms))
        self.text = f"{function}({inside.text()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Sum:
    """A sum of weighted products of powers of variables and atoms."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Key, float]) -> None:
        self.terms = {key: weight for key, weight in terms.items() if weight != 0}
        if not all(map(math.isfinite, self.terms.values())):
            raise OverflowError

    @classmethod
    def variable(cls, index: int) -> Sum:
        """Return a single variable."""
        return cls({((index, 1),): 1.0})

    @classmethod
    def of(cls, value: Any) -> Sum:
        """Return a number or a sum as a sum."""
        if isinstance(value, Sum):
            return value
        if isinstance(value, int | float):
            return cls({(): float(value)})
        raise FormulaError("there is a vector where a number is needed")

    @property
    def constant(self) -> float | None:
        """The value of a sum without variables; None if it has any."""
        return None if any(self.terms) else self.terms.get((), 0.0)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sum | int | float):
            return NotImplemented
        more = Sum.of(other).terms
        spend(len(self.terms) / _COPIED_AT_ONCE + len(more))
        terms = dict(self.terms)
        for key, weight in more.items():
            terms[key] = terms.get(key, 0.0) + weight
        return Sum(terms)

    __radd__ = __add__

    def __neg__(self) -> Sum:
        return Sum({key: -weight for key, weight in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Sum | int | float) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Sum | int | float):
            return NotImplemented
        if not isinstance(other, Sum):
            spend(len(self.terms) / _COPIED_AT_ONCE)
            return Sum({key: weight * other for key, weight in self.terms.items()})
        a, b = self, other
        if not _can_multiply_out(a, b):
            a, b = a.in_brackets(), b.in_brackets()
        spend(_size(a) * len(b.terms) + _size(b) * len(a.terms))
        terms: dict[Key, float] = {}
        for one, weight in a.terms.items():
            for two, factor in b.terms.items():
                key = _merged(one, two)
                terms[key] = terms.get(key, 0.0) + weight * factor
        return Sum(terms)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, Sum | int | float):
            return NotImplemented
        divisor = Sum.of(other)
        if (number := divisor.constant) is not None:
            return Sum({key: weight / number for key, weight in self.terms.items()})
        return (self.in_brackets() if len(self.terms) > 1 else self) * divisor**-1

    def __rtruediv__(self, other: Any) -> Any:
        return Sum.of(other) / self

    def __pow__(self, exponent: Any) -> Any:
        power = Sum.of(exponent).constant
        if power is None:
            return _exponential(self, Sum.of(exponent))
        if self.constant is not None:
            return Sum.of(power_of_number(self.constant, power))
        return self._raised(float(power))

    def _raised(self, power: float) -> Sum:
        if power in (0, 1):
            return self if power == 1 else Sum.of(1.0)
        if len(self.terms) == 1:
            return self._power_of_term(power)
        if float(power).is_integer() and 2 <= power <= _MAX_DEGREE and self.is_polynomial:
            if power == 2 and self.is_linear:
                return Sum({((Atom("", self), 2),): 1.0})
            return self._multiplied_out(int(power))
        return Sum({((Atom("", self), _plain(power)),): 1.0})

    def __rpow__(self, base: Any) -> Any:
        return _exponential(Sum.of(base), self)

    def _power_of_term(self, power: float) -> Sum:
        ((key, weight),) = self.terms.items()
        whole = float(power).is_integer()
        if whole or (len(key) == 1 and key[0][1] == 1 and weight > 0):
            raised = tuple((factor, _plain(p * power)) for factor, p in key)
            return Sum({raised: power_of_number(weight, power)})
        return Sum({((Atom("", self), _plain(power)),): 1.0})

    def _multiplied_out(self, power: int) -> Sum:
        total = self
        for _ in range(power - 1):
            if len(total.terms) * len(self.terms) > _MAX_TERMS:
                return Sum({((Atom("", self), power),): 1.0})
            total = total * self
        return total

    def of_function(self, name: str) -> Sum:
        """Return a function of this sum."""
        if self.constant is not None:
            return Sum.of(float(FUNCTIONS[name](self.constant)))
        return Sum({((Atom(name, self), 1),): 1.0})

    def in_brackets(self) -> Sum:
        """Return the sum as a single term."""
        return self if len(self.terms) <= 1 else Sum({((Atom("", self), 1),): 1.0})

    @property
    def is_polynomial(self) -> bool:
        """Whether all factors are variables, with whole powers."""
        return all(isinstance(f, int) and p > 0 and float(p).is_integer() for key in self.terms for f, p in key)

    @property
    def is_linear(self) -> bool:
        """Whether every term is a number or a variable."""
        return self.is_polynomial and all(sum(p for _, p in key) <= 1 for key in self.terms)

    def text(self) -> str:
        """Return the sum as an expression over x[0], x[1], …"""
        parts = [_term_text(key, weight) for key, weight in self.terms.items()]
        return " + ".join(parts).replace(" + -", " - ") or "0"


def functions() -> dict[str, Callable[[Any], Any]]:
    """Return the functions of sums, for the interpreter."""
    return {name: partial(_apply, name) for name in FUNCTIONS}


def _apply(name: str, value: Any) -> Any:
    return value.of_function(name) if isinstance(value, Sum) else float(FUNCTIONS[name](value))


def add(items: Iterable[Any]) -> Any:
    """Return the total of numbers, sums and arrays; quick for many sums."""
    total, others = Sum({}), []
    for item in items:
        if isinstance(item, Sum):
            _add_to(total, item)
        else:
            others.append(item)
    rest = sum(others)
    return total + rest if total.terms else rest


def _size(total: Sum) -> int:
    """Return how much there is to multiply with: terms and their factors."""
    return len(total.terms) + sum(map(len, total.terms))


def _can_multiply_out(a: Sum, b: Sum) -> bool:
    if len(a.terms) <= 1 or len(b.terms) <= 1:
        return True
    return len(a.terms) * len(b.terms) <= _MAX_TERMS and a.is_polynomial and b.is_polynomial


def _add_to(total: Sum, other: Sum) -> Sum:
    """Return total + other; it changes total, which is quick where many terms are added."""
    spend(len(other.terms))
    for key, weight in other.terms.items():
        total.terms[key] = total.terms.get(key, 0.0) + weight
        if total.terms[key] == 0:
            del total.terms[key]
    return total


def _exponential(base: Sum, exponent: Sum) -> Sum:
    if base.constant is None:
        raise FormulaError("a power with variables in base and exponent: write exp(b*log(a))")
    if base.constant <= 0:
        raise FormulaError("a power with a variable in its exponent needs a positive base")
    power: Sum = exponent * math.log(base.constant)
    return power.of_function("exp")


def _plain(power: float) -> float:
    return int(power) if float(power).is_integer() else float(power)


def _merged(one: Key, two: Key) -> Key:
    """Return the product of two keys: powers of the same factor are added."""
    if not one or not two:
        return one or two
    powers: dict[Any, float] = dict(one)
    for factor, power in two:
        powers[factor] = _plain(powers.get(factor, 0) + power)
    return tuple(sorted(((f, p) for f, p in powers.items() if p), key=_order))


def _order(item: tuple[Any, float]) -> tuple[bool, int, str]:
    factor = item[0]
    return (False, factor, "") if isinstance(factor, int) else (True, 0, factor.text)


def _term_text(key: Key, weight: float) -> str:
    if not key:
        return repr(weight)
    if abs(weight) == 1:
        return _key_text(key) if weight > 0 else f"-{_key_text(key)}"
    return f"{weight!r}*{_key_text(key)}"


def _key_text(key: Key) -> str:
    over = "*".join(_power_text(f, p) for f, p in key if p > 0) or "1"
    under = "".join(f"/{_power_text(f, -p)}" for f, p in key if p < 0)
    return over + under


def _power_text(factor: Any, power: float) -> str:
    name = f"x[{factor}]" if isinstance(factor, int) else factor.text
    return name if power == 1 else f"{name}**{power!r}"


def each_sum(value: Any) -> Iterator[Sum]:
    """Yield the entries of a number, sum, vector or matrix."""
    if hasattr(value, "flat"):
        yield from (Sum.of(float(item) if not isinstance(item, Sum) else item) for item in value.flat)
    else:
        yield Sum.of(value)


def as_expression(total: Sum) -> Expression:
    """Return a sum as data of a problem."""
    plain = Sum({})
    for key, weight in total.terms.items():
        plain = _add_to(plain, _expanded(key, weight))
    constant, linear, quadratic, squares, monomials, waves, formulas = 0.0, [], [], [], [], [], []
    for key, weight in plain.terms.items():
        if not key:
            constant = weight
        elif square := _square(key, weight):
            squares.append(square)
        elif wave := _wave(key, weight):
            waves.append(wave)
        elif not all(isinstance(f, int) and p > 0 and float(p).is_integer() for f, p in key):
            formulas.append(Formula(weight, _key_text(key)))
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
    if size > _MAX_TERMS or sum(p for f, p in key if isinstance(f, Atom)) > _MAX_DEGREE:
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
