"""Expressions in problem files: a subset of Python's, read by `ast` and computed here, never executed.

One interpreter serves four kinds of values for the variables: terms (`algebra`, to find the structure of a problem),
numbers, numbers with slopes (for gradients) and variables of Pyomo.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from fairtrial.core.registry import nearest
from fairtrial.tracks.optimisation.arrays import (
    EXACT,
    FormulaError,
    array,
    checked,
    each,
    power,
    product,
    shape,
    spend,
    total_product,
    whole,
)

MAX_TEXT = 200_000  # characters of one expression
_MAX_DEPTH = 80  # of brackets and functions; sums of many terms are not deep
_MAX_STEPS = 1_000_000
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "abs": abs,
}
CONSTANTS = {"pi": math.pi, "e": math.e}
RESERVED = ("sum", "prod", "range", "len", *FUNCTIONS, *CONSTANTS)
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: power,
    ast.MatMult: lambda a, b: a @ b,
}
_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}
_RELATIONS: dict[type[ast.AST], str] = {ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "=="}


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """Return the syntax tree of an expression."""
    if len(text) > MAX_TEXT:
        raise FormulaError(f"the expression has more than {MAX_TEXT} characters; put its numbers into `data`")
    try:
        # The brackets allow several lines, and `… for i in range(3)` after a constraint.
        return ast.parse(f"({text.strip()})", mode="eval").body
    except SyntaxError as error:
        raise FormulaError(_syntax_message(text, error)) from None
    except (RecursionError, MemoryError, ValueError):
        raise FormulaError(
            "the expression is too long or too deeply nested; write sums with `for`, or vectors"
        ) from None


def _syntax_message(text: str, error: SyntaxError) -> str:
    bare = text.replace("==", "").replace("<=", "").replace(">=", "")
    if "=" in bare:
        return "write `==` for an equality, not `=`"
    place = (error.offset or 2) - 2
    near = text.strip()[max(0, place - 10) : place + 10].strip()
    return f"not an expression: {error.msg}" + (f" near `{near}`" if near else "")


class Interpreter:
    """Computes expressions over names, which are numbers, arrays, and whatever stands for variables."""

    def __init__(
        self,
        names: Mapping[str, Any],
        functions: Mapping[str, Callable[[Any], Any]],
        add: Callable[[Iterable[Any]], Any] = sum,
    ) -> None:
        self._names, self._functions, self._add = names, functions, add
        self._steps = self._depth = 0
        self.used: set[str] = set()

    def value(self, text: str) -> Any:
        """Return the value of an expression."""
        return self._guarded(lambda: self._value(parse(text), {}))

    def relations(self, text: str) -> list[tuple[Any, str, Any]]:
        """Return the left side, relation and right side of a constraint; several if it has `for`, or a chain."""
        node = parse(text)
        return self._guarded(lambda: self._relations(node))  # type: ignore[no-any-return]

    def _guarded(self, compute: Callable[[], Any]) -> Any:
        self._steps = self._depth = 0
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return compute()
        except FormulaError:
            raise
        except ZeroDivisionError:
            raise FormulaError("division by zero") from None
        except (OverflowError, FloatingPointError):
            raise FormulaError("a number is too large") from None
        except (ValueError, TypeError, IndexError) as error:
            raise FormulaError(f"cannot be computed: {error}") from None
        except RecursionError:
            raise FormulaError("too deeply nested") from None

    def _relations(self, node: ast.expr) -> list[tuple[Any, str, Any]]:
        if isinstance(node, ast.GeneratorExp):
            return [row for names in self._loops(node.generators, {}) for row in self._compared(node.elt, names)]
        return list(self._compared(node, {}))

    def _compared(self, node: ast.expr, names: dict[str, Any]) -> Iterator[tuple[Any, str, Any]]:
        if not isinstance(node, ast.Compare):
            raise FormulaError("a constraint needs `<=`, `>=` or `==`")
        sides = [self._value(side, names) for side in (node.left, *node.comparators)]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(operator) in (ast.Lt, ast.Gt):
                raise FormulaError("write `<=` or `>=`: a strict inequality has no optimum at its border")
            if type(operator) not in _RELATIONS:
                raise FormulaError("a constraint needs `<=`, `>=` or `==`")
            yield left, _RELATIONS[type(operator)], right

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        self._steps += 1
        spend(1)
        if self._steps > _MAX_STEPS:
            raise FormulaError(f"the expression takes more than {_MAX_STEPS:,} operations; use vectors and matrices")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FormulaError("too deeply nested")
        try:
            compute = _NODES.get(type(node))
            if compute is None:
                raise FormulaError(f"`{_source(node)}` is not allowed in an expression")
            return compute(self, node, names)
        finally:
            self._depth -= 1

    def _number(self, node: ast.Constant, _: dict[str, Any]) -> Any:
        number = node.value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise FormulaError(f"`{_source(node)}` is not a number")
        return number if isinstance(number, int) and abs(number) < EXACT else float(number)

    def _sign(self, node: ast.UnaryOp, names: dict[str, Any]) -> Any:
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise FormulaError(f"`{_source(node)}` is not allowed in an expression")
        value = self._value(node.operand, names)
        return -value if isinstance(node.op, ast.USub) else value

    def _subscript(self, node: ast.Subscript, names: dict[str, Any]) -> Any:
        """Return an entry, or a part of an array; indices count from 0 and never from the end."""
        value, index = self._value(node.value, names), self._index(node.slice, names)
        if not isinstance(value, np.ndarray):
            raise FormulaError(f"`{_source(node)}`: this is one number, without an index")
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > value.ndim:
            raise FormulaError(f"`{_source(node)}` has {len(indices)} indices, and this has {value.ndim}")
        for place, size in zip(indices, value.shape, strict=False):
            if isinstance(place, int) and not 0 <= place < size:
                raise FormulaError(f"`{_source(node)}`: the index {place} is outside of 0 … {size - 1}")
        entry = value[index]
        return float(entry) if isinstance(entry, np.floating) else entry

    def _vector(self, node: ast.List | ast.Tuple, names: dict[str, Any]) -> Any:
        return array([self._value(item, names) for item in node.elts])

    def _attribute(self, node: ast.Attribute, names: dict[str, Any]) -> Any:
        if node.attr != "T":
            raise FormulaError(f"`{_source(node)}` is not allowed in an expression")
        value = self._value(node.value, names)
        if not isinstance(value, np.ndarray):
            raise FormulaError(f"`{_source(node)}`: one number has no transpose")
        return value.T

    def _comparison(self, node: ast.Compare, _: dict[str, Any]) -> Any:
        raise FormulaError("a comparison can only be between the two sides of a constraint")

    def _named(self, node: ast.Name, names: dict[str, Any]) -> Any:
        name = node.id
        if name in names:
            return names[name]
        if name in self._names:
            self.used.add(name)
            return self._names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in RESERVED:
            raise FormulaError(f"`{name}` is a function: write `{name}(…)`")
        raise FormulaError(f"unknown name `{name}`{nearest(name, [*names, *self._names])}")

    def _operations(self, node: ast.BinOp, names: dict[str, Any]) -> Any:
        """Compute a chain like a + b − c from the left, without recursion: sums may have a thousand terms."""
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            chain.append(first)
            first = first.left
        total = self._value(first, names)
        for step in reversed(chain):
            if isinstance(step.op, ast.BitXor):
                raise FormulaError("write `**` for a power, not `^`")
            if type(step.op) not in _OPERATORS:
                raise FormulaError(f"`{_source(step)}` is not allowed in an expression")
            total = self._operation(step, total, self._value(step.right, names))
        return total

    def _operation(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        if isinstance(node.op, ast.MatMult):
            return checked(product(left, right, self._add))
        if isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.shape != right.shape:
            raise FormulaError(f"`{_source(node)}`: the shapes {shape(left)} and {shape(right)} differ")
        return checked(_OPERATORS[type(node.op)](left, right))

    def _index(self, node: ast.expr, names: dict[str, Any]) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(item, names) for item in node.elts)
        if isinstance(node, ast.Slice):
            ends = (None if end is None else self._value(end, names) for end in (node.lower, node.upper))
            if node.step is not None:
                raise FormulaError("a slice has no step here: write `y[2:5]`")
            return slice(*(None if end is None else whole(end) for end in ends))
        return whole(self._value(node, names))

    def _call(self, node: ast.Call, names: dict[str, Any]) -> Any:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise FormulaError(f"`{_source(node)}` is not allowed in an expression")
        name, args = node.func.id, node.args
        if name == "sum" and len(args) == 1:
            return checked(self._add(self._items(args[0], names)))
        if name == "prod" and len(args) == 1:
            return total_product(self._items(args[0], names))
        if name == "len" and len(args) == 1:
            return len(self._value(args[0], names))
        if name in self._functions and len(args) == 1:
            return each(self._functions[name], self._value(args[0], names))
        if name == "range":
            raise FormulaError("`range` belongs after `in`: sum(c[i]*x[i] for i in range(4))")
        if name in RESERVED:
            raise FormulaError(f"`{name}` takes one argument")
        raise FormulaError(f"unknown function `{name}`{nearest(name, [n for n in RESERVED if n not in CONSTANTS])}")

    def _items(self, node: ast.expr, names: dict[str, Any]) -> Iterator[Any]:
        if isinstance(node, ast.GeneratorExp | ast.ListComp):
            for inner in self._loops(node.generators, names):
                yield self._value(node.elt, inner)
            return
        value = self._value(node, names)
        if not isinstance(value, np.ndarray):
            raise FormulaError(f"`{_source(node)}` is one number: sum takes a vector, or `… for i in range(…)`")
        yield from value.flat

    def _loops(self, generators: list[ast.comprehension], names: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not generators:
            yield names
            return
        loop = generators[0]
        if not isinstance(loop.target, ast.Name) or loop.is_async:
            raise FormulaError("a loop has one index: `for i in range(4)`")
        for item in self._range(loop.iter, names):
            inner = {**names, loop.target.id: item}
            if all(self._holds(condition, inner) for condition in loop.ifs):
                yield from self._loops(generators[1:], inner)

    def _range(self, node: ast.expr, names: dict[str, Any]) -> Any:
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[_, *more] as args, keywords=[]) if len(more) <= 2:
                return range(*(whole(self._value(arg, names)) for arg in args))
        value = self._value(node, names)
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise FormulaError(f"cannot loop over `{_source(node)}`: write `for i in range(4)`")
        return [int(item) if float(item).is_integer() else float(item) for item in value.flat]

    def _holds(self, node: ast.expr, names: dict[str, Any]) -> bool:
        """Return whether a condition on indices holds, as in `for i in range(4) if i != j`."""
        self._steps += 1
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._holds(part, names) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return any(self._holds(part, names) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self._holds(part, names)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                sides = [self._value(side, names) for side in (left, *others)]
                if all(isinstance(side, int | float) for side in sides):
                    pairs = zip(sides, ops, sides[1:], strict=False)
                    return all(_COMPARISONS[type(op)](a, b) for a, op, b in pairs)
        raise FormulaError(f"`if {_source(node)}` is not a condition on indices and data")


def _source(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}…"


_NODES: dict[type[ast.AST], Callable[[Interpreter, Any, dict[str, Any]], Any]] = {
    ast.Constant: Interpreter._number,
    ast.Name: Interpreter._named,
    ast.UnaryOp: Interpreter._sign,
    ast.BinOp: Interpreter._operations,
    ast.Subscript: Interpreter._subscript,
    ast.Call: Interpreter._call,
    ast.List: Interpreter._vector,
    ast.Tuple: Interpreter._vector,
    ast.Attribute: Interpreter._attribute,
    ast.Compare: Interpreter._comparison,
}
