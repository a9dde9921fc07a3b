"""Vectors and matrices in expressions, of numbers or of whatever stands for variables."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_MAX_ENTRIES = 1_000_000  # of a vector or matrix
MAX_WORK = 12_000_000  # of reading one problem: terms added and multiplied, and steps
_FLOATS_AT_ONCE = 1000  # multiplied in the time of one term
EXACT = 2**53  # whole numbers up to here are exact as floats


class FormulaError(ValueError):
    """Something is wrong with an expression; the message says what to write instead."""


class _Work(threading.local):
    """What may still be done in this thread; without a limit unless one is set."""

    left = math.inf


_work = _Work()


@contextmanager
def limited_work(most: int = MAX_WORK) -> Iterator[None]:
    """Limit the work inside the block: a short text can describe more terms than any computer can write down."""
    before, _work.left = _work.left, min(_work.left, most)
    try:
        yield
    finally:
        _work.left = before


def spend(amount: float) -> None:
    """Count some work, before it is done; raise FormulaError when it was too much."""
    _work.left -= amount
    if _work.left < 0:
        raise FormulaError("the problem has too many terms to be read; make it smaller, or give it as an MPS file")


def whole(value: Any) -> int:
    """Return an index; it must be a whole number."""
    if isinstance(value, int | float | np.floating | np.integer) and float(value).is_integer():
        return int(value)
    raise FormulaError("an index must be a whole number")


def array(items: list[Any]) -> np.ndarray[Any, Any]:
    """Return values as a vector."""
    if all(isinstance(item, int | float) for item in items):
        return np.asarray(items, dtype=np.float64)
    return _filled(items)


def _filled(items: list[Any]) -> np.ndarray[Any, Any]:
    """Return a vector of objects, whatever they are."""
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def each(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a function of a value, or of every entry of an array."""
    if not isinstance(value, np.ndarray):
        return function(value)
    return _filled([function(item) for item in value.flat]).reshape(value.shape)


def power(base: Any, exponent: Any) -> Any:
    """Return a power; of two numbers, without whole numbers of endless length."""
    if isinstance(base, int | float) and isinstance(exponent, int | float):
        power = float(base) ** float(exponent)
        if isinstance(power, complex):
            raise FormulaError("a root of a negative number")
        return int(power) if isinstance(base, int) and power.is_integer() and abs(power) < EXACT else power
    return base**exponent


def total_product(items: Iterable[Any]) -> Any:
    """Return the product of numbers or terms, without whole numbers of endless length."""
    total: Any = 1
    for item in items:
        total = checked(total * item)
    return total


def product(a: Any, b: Any, add: Callable[[Iterable[Any]], Any]) -> Any:
    """Return the product of vectors and matrices; terms with a factor of 0 are left out."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        raise FormulaError("`@` multiplies vectors and matrices; write `*` for numbers")
    if a.shape[-1] != b.shape[0]:
        raise FormulaError(f"`@` cannot multiply shapes {shape(a)} and {shape(b)}")
    if object not in (a.dtype, b.dtype):
        spend(a.size * (b.size / b.shape[0]) / _FLOATS_AT_ONCE)
        return a @ b
    rows, columns = np.atleast_2d(a), b.reshape(b.shape[0], -1)
    entries = [
        add(p * q for p, q in zip(row, column, strict=True) if not _zero(p, q)) for row in rows for column in columns.T
    ]
    size = (*a.shape[:-1], *b.shape[1:])
    return _filled(entries).reshape(size) if size else entries[0]


def _zero(p: Any, q: Any) -> bool:
    return (isinstance(p, float) and p == 0) or (isinstance(q, float) and q == 0)


def shape(array: np.ndarray[Any, Any]) -> str:
    """Return the shape of an array in words."""
    return "×".join(str(size) for size in array.shape)


def checked(value: Any) -> Any:
    """Return a value, unless it is too large to go on with."""
    if isinstance(value, np.ndarray):
        spend(value.size / _FLOATS_AT_ONCE)
        if value.size > _MAX_ENTRIES:
            raise FormulaError(f"a vector or matrix has more than {_MAX_ENTRIES:,} entries")
    if isinstance(value, int) and abs(value) >= EXACT:
        return float(value)
    return float(value) if isinstance(value, np.floating) else value
