"""What a template may do while it is filled in: every step and every character that it makes is counted.

Jinja2's sandbox keeps a template from Python's internals, not from taking all time and memory: a few loops or doublings
are enough. So its loops, operators, filters and calls pay for what they do out of one purse, before they do it wherever
the result can be much larger than what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

if TYPE_CHECKING:
    from jinja2.runtime import Context

_MOST = 50_000_000  # characters that are made or read, in all
_STEP, _ITEM = 200, 20  # what a step of a loop or a call costs, and an item of a list, in characters
_MAX_PRODUCT = 1_000_000  # characters or items that a multiplication may make
_MAX_EXPONENT, _MAX_BITS = 64, 4096
_MAX_STEPS = 10_000  # of one `range()`
_MAX_INDENT = 16
# What makes a text as long as a number or another text says: not needed in prompts, and a way to fill the memory.
_GROWING_FILTERS = ("center", "format", "indent", "slice", "batch", "wordwrap", "xmlattr", "urlize")
_GROWING_METHODS = frozenset(
    {"center", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill", "translate", "to_bytes"}
)
_CHEAP_FILTERS = frozenset({"length", "count", "first", "last", "default", "d", "safe"})
_COUNTED, _JOINED, _WEIGHED = "fairtrial_counted", "fairtrial_joined", "fairtrial_weighed"
_COLLECTIONS = (list, tuple, dict, range)


class _Purse:
    def __init__(self, call: int) -> None:
        self._left, self.call = _MOST, _STEP + call

    def take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise SecurityError("this much work: fewer loops, or shorter texts, would do")


_purse: ContextVar[_Purse] = ContextVar("work of a template")


@contextmanager
def limited_work(text: str) -> Iterator[None]:
    """Let a template with this text do a limited amount of work in the block."""
    token = _purse.set(_Purse(len(text)))
    try:
        yield
    finally:
        _purse.reset(token)


def _take(amount: int) -> None:
    _purse.get().take(amount)


def _weigh(value: Any) -> Any:
    """Pay for a value that is read or made."""
    if isinstance(value, str | bytes):
        _take(len(value))
    elif isinstance(value, _COLLECTIONS):
        _take(_ITEM * len(value))
    return value


def _counted(items: Iterable[Any], cost: int = 0) -> Iterator[Any]:
    """Pay for every step of a loop."""
    for item in items:
        _take(_STEP + cost)
        yield item


def _joined(parts: Iterable[Any]) -> str:
    """Join texts, and pay for each before there is a long one."""
    texts = []
    for part in parts:
        texts.append(str(part))
        _take(len(texts[-1]) + 1)
    return "".join(texts)


def _replacing(text: str, old: str, new: str) -> None:
    """Pay for a replacement in a text before it is made."""
    _take(len(text) + (text.count(old) if old else len(text) + 1) * len(new))


def _limited_range(*args: int) -> range:
    steps = range(*args)
    if len(steps) > _MAX_STEPS:
        raise SecurityError(f"a range of more than {_MAX_STEPS:,} numbers")
    return steps


def _paying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter or test that pays for what it is given and what it makes."""

    @wraps(function)
    def pay(*args: Any, **options: Any) -> Any:
        _take(_STEP)
        if name not in _CHEAP_FILTERS:
            for value in (*args, *options.values()):
                _weigh(value)
        result = function(*args, **options)
        return _counted(result) if isinstance(result, Iterator) else _weigh(result)

    return pay


class _Transformer(NodeTransformer):
    """Puts what counts around loops, comparisons and joined texts."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # Jinja2's names
        self.generic_visit(node)
        texts = sum(len(part.data) for part in node.find_all(nodes.TemplateData))
        node.iter = _filter(_COUNTED, node.iter, nodes.Const(texts))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(_JOINED, nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(_WEIGHED, node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filter(_WEIGHED, node.expr)
        for operand in node.ops:
            operand.expr = _filter(_WEIGHED, operand.expr)
        return node


def _filter(name: str, node: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


class Environment(ImmutableSandboxedEnvironment):
    """The sandbox of templates, with a limit on what they may do."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def __init__(self, as_text: Callable[[Any], Any]) -> None:
        super().__init__(
            undefined=StrictUndefined, keep_trailing_newline=True, finalize=lambda value: _weigh_output(as_text(value))
        )
        for name in _GROWING_FILTERS:
            del self.filters[name]
        to_json, replace, join = (self.filters[name] for name in ("tojson", "replace", "join"))
        self.filters.update({"tojson": _narrow(to_json), "replace": _paid_replace(replace), "join": _paid_join(join)})
        families: tuple[dict[str, Any], ...] = (self.filters, self.tests)
        for family in families:
            family.update({name: _paying(name, function) for name, function in family.items()})
        self.filters.update({_COUNTED: _counted, _JOINED: _joined, _WEIGHED: _weigh})
        self.globals = {"range": _limited_range}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Transformer().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate, unless that makes something large."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "%" and not numbers:
            raise SecurityError("% with text")
        if operator == "**" and (not numbers or abs(right) > _MAX_EXPONENT or abs(left) > _MAX_PRODUCT):
            raise SecurityError("a power this large")
        if operator == "*" and not numbers:
            count, thing = (left, right) if isinstance(left, int) else (right, left)
            if not isinstance(count, int) or count * len(thing) > _MAX_PRODUCT:
                raise SecurityError("a text this long")
            _take(max(0, count) * len(thing))
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > _MAX_BITS:
            raise SecurityError("a number this large")
        if operator == "+" and not numbers:
            _weigh(left)
            _weigh(right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **options: Any) -> Any:
        """Call a macro, a method or a loop, and pay for it."""
        purse = _purse.get()
        purse.take(purse.call if isinstance(obj, Macro) else _STEP)
        if isinstance(obj, LoopContext) and args:
            args = (_counted(args[0]), *args[1:])
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, str | bytes):
            _weigh(owner)
            if name == "join" and len(args) == 1:
                args = (list(_joinable(args[0], len(owner))),)
            if name == "replace" and len(args) >= 2:
                _replacing(owner, args[0], args[1])  # type: ignore[arg-type]  # bytes count alike
        return _weigh(super().call(context, obj, *args, **options))

    def wrap_str_format(self, value: Any) -> None:
        """Let `is_safe_attribute` decide on `str.format`, as on all methods: a width makes a text of any length."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may use an attribute."""
        growing = isinstance(obj, str | bytes | int) and attr in _GROWING_METHODS
        return not growing and super().is_safe_attribute(obj, attr, value)


def _joinable(parts: Iterable[Any], separator: int) -> Iterator[Any]:
    for part in parts:
        _take(len(part) + separator + 1)
        yield part


def _weigh_output(value: Any) -> Any:
    _take(len(value) if isinstance(value, str) else _STEP)
    return value


def _narrow(to_json: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(to_json)
    def narrow(context: Any, value: Any, indent: int | None = None) -> Any:
        if indent is not None and not 0 <= indent <= _MAX_INDENT:
            raise SecurityError("an indent this wide")
        return to_json(context, value, indent)

    return narrow


def _paid_replace(replace: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(replace)
    def paid(context: Any, text: Any, old: Any, new: Any, count: int | None = None) -> Any:
        _replacing(str(text), str(old), str(new))
        return replace(context, text, old, new, count)

    return paid


def _paid_join(join: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(join)
    def paid(context: Any, parts: Any, d: Any = "", attribute: Any = None) -> Any:
        separator = len(str(d))

        def pay() -> Iterator[Any]:
            for part in parts:
                _take(separator + (len(part) if isinstance(part, str) else _STEP))
                yield part

        return join(context, pay(), d, attribute)

    return paid
