"""A hash of a function's code: is this still the function whose answers are stored?

It covers what the function does, and not where it is: its code, defaults, what it closes over, and the constants,
functions and classes of its own module that it uses. It does not cover imported modules, what may hold state (lists,
dictionaries and sets outside the function), or what objects hold other than plain data and functions.

The code counts by its syntax tree, which neither comments nor another Python change, but only where the source compiles
to this very code: a file may have been edited since it was imported, and a line may hold several functions. Elsewhere
(no source, or assertions that pytest has rewritten) the compiled code counts, which differs from Python to Python.
"""

from __future__ import annotations
import __future__

import ast
import enum
import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairtrial.core.secrets import is_credential

LENGTH = 16
_DEPTH = 50  # of data in data, beyond which nobody looks
_SETS = 5  # the same for sets in sets
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))
_CONSTANT = (*_PLAIN, tuple, frozenset, re.Pattern, functools.partial)
_ATTRIBUTES = (*_CONSTANT, types.FunctionType, types.MethodType)
_DATA = (*_CONSTANT, list, dict, set)
_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_BELOW = 10**6  # lines
_CLASSES_KNOW_THEIR_LINE = sys.version_info >= (3, 13)  # as part of their code
_FUTURE = __future__.annotations.compiler_flag


def code_hash(function: Any) -> str:
    """Return a hash of a function's code: the same in every process, and on every machine with the same Python."""
    return _digest(function, 0)


def _digest(value: Any, sets: int) -> str:
    text = "\n".join(_Walk(sets).describe_all(value))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


class _Walk:
    """Describes a value and all that it refers to; functions, classes and objects are described once, by number."""

    def __init__(self, sets: int) -> None:
        self._sets = sets
        self._found: list[Any] = []  # which also keeps them: the id of what is gone is given to something else
        self._numbers: dict[int, int] = {}
        self._open: list[int] = []  # data that is being described, for data can contain itself
        self._sources = _Sources()

    def describe_all(self, value: Any) -> Iterator[str]:
        yield self._text(value)
        for found in self._found:  # which grows meanwhile
            yield self._describe(found)

    def _text(self, value: Any) -> str:
        """Return what stands for a value: itself if it is data, a number if it is described on its own."""
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name} = {self._text(value.value)}"
        if isinstance(value, _PLAIN):
            return repr(value)
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, re.Pattern):
            return f"pattern {value.pattern!r} {value.flags}"
        if isinstance(value, tuple | list | set | frozenset | Mapping | functools.partial | types.MethodType):
            return self._nested(value)
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._found)
            self._found.append(value)
        return f"@{self._numbers[id(value)]}"

    def _nested(self, value: Any) -> str:
        if id(value) in self._open or len(self._open) == _DEPTH:
            return "…"
        self._open.append(id(value))
        try:
            return f"{type(value).__name__}({', '.join(self._items(value))})"
        finally:
            self._open.pop()

    def _items(self, value: Any) -> Iterable[str]:
        if isinstance(value, functools.partial):
            return map(self._text, (value.func, value.args, value.keywords))
        if isinstance(value, types.MethodType):
            return map(self._text, (value.__func__, value.__self__))
        if isinstance(value, set | frozenset):  # whose order changes from process to process
            return sorted(self._apart(item) for item in value)
        if isinstance(value, Mapping):
            keys = {self._apart(key): key for key in value}
            return [f"{apart}: {self._text(value[keys[apart]])}" for apart in sorted(keys)]
        return map(self._text, value)

    def _apart(self, item: Any) -> str:
        """Return what does not depend on what was described before, and so can be sorted."""
        return repr(item) if isinstance(item, str) else _digest(item, self._sets + 1) if self._sets < _SETS else "…"

    def _describe(self, value: Any) -> str:
        if isinstance(value, types.FunctionType):
            return " ".join(self._function(value))
        if isinstance(value, type):
            return " ".join(self._class(value))
        if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            return f"{value.__qualname__} of {self._text(value.__self__)}"
        return " ".join(self._object(value))

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        module = function.__globals__.get("__name__", "")  # decorators copy `__module__` from what they decorate
        own = not _comes_with_python(module)
        yield self._sources.code(function.__code__) if own else f"{module}.{function.__code__.co_qualname}"
        yield self._text((function.__defaults__, function.__kwdefaults__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # an empty cell
                continue
            if not isinstance(value, list | dict | set):  # which may hold state that changes from call to call
                yield f"{name}={self._text(value)}"
        for name in sorted(_global_names(function.__code__)) if own else ():
            value = function.__globals__.get(name, function)
            if value is not function and _counts(value, module):
                yield f"{name}={self._text(value)}"

    def _class(self, cls: type) -> Iterator[str]:
        """Yield the members of a class of the user's; a class of an installed package counts by its name."""
        file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
        if _comes_with_python(cls.__module__) or "site-packages" in file:
            yield f"{cls.__module__}.{cls.__qualname__}"
            return
        yield cls.__qualname__
        yield from map(self._text, cls.__bases__)
        if issubclass(cls, enum.Enum):
            yield from map(self._text, cls)
            return
        for name, member in sorted(vars(cls).items()):
            if isinstance(member, _DATA) and not _is_special(name):
                yield f"{name}={self._text(member)}"
            elif functions := [one for one in _functions_of(member) if not _is_generated(cls, name, one)]:
                yield f"{name}={self._text(functions)}"

    def _object(self, value: Any) -> Iterator[str]:
        """Yield the class of an object and its plain data and functions; keys do not change what it does."""
        yield self._text(type(value))
        names = {*getattr(value, "__dict__", ()), *_slots(type(value))}
        for name in sorted(names):
            attribute = getattr(value, name, None)
            counts = name == "__wrapped__" or not (_is_special(name) or is_credential(name))
            if counts and isinstance(attribute, _ATTRIBUTES):
                yield f"{name}={self._text(attribute)}"
        if not names and _comes_with_python(type(value).__module__) and " at 0x" not in repr(value):
            yield repr(value)  # such as a date, or operator.itemgetter("answer")


def _comes_with_python(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _counts(value: Any, module: str) -> bool:
    """Return whether a global is a constant, or a function or class of the same module."""
    if isinstance(value, types.FunctionType | type) or hasattr(value, "__wrapped__"):
        return bool(getattr(value, "__module__", None) == module)
    return isinstance(value, _CONSTANT)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (name for name in ((slots,) if isinstance(slots, str) else slots) if not _is_special(name))


def _functions_of(member: Any) -> list[Any]:
    """Return the functions that a member of a class consists of."""
    if isinstance(member, property):
        return [one for one in (member.fget, member.fset, member.fdel) if one is not None]
    one = getattr(member, "__func__", None) or getattr(member, "__wrapped__", None) or getattr(member, "func", member)
    return [one] if isinstance(one, types.FunctionType) else []


def _is_generated(cls: type, name: str, function: types.FunctionType) -> bool:
    """Return whether a member was written by Python itself, each version of which writes others."""
    if not _is_special(name) or name == "__call__":
        return False
    by_dataclass = "__dataclass_fields__" in vars(cls) and function.__code__.co_filename == "<string>"
    return by_dataclass or _comes_with_python(function.__globals__.get("__name__", "")) or "annotate" in name


def _global_names(code: types.CodeType) -> set[str]:
    """Return the names of globals that a function reads and does not assign, also in functions inside it."""
    import dis

    read: set[str] = set()
    assigned: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS:
            read.add(str(instruction.argval))
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            assigned.add(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            read |= _global_names(constant)
    return read - assigned


# -- code ----------------------------------------------------------------------------------------


class _Sources:
    """The files of functions, each read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Source] = {}

    def code(self, code: types.CodeType) -> str:
        """Return the syntax tree of a function where that is certain, else its compiled code."""
        place = code.co_filename, code.co_flags & _FUTURE | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as notebooks have it
        if place not in self._known:
            self._known[place] = _Source(_read(code, place[1]), place[1])
        compiled = _compiled(code)
        found = set(self._known[place].definitions(code, compiled))
        return found.pop() if len(found) == 1 else repr(compiled)


def _read(code: types.CodeType, flags: int) -> ast.Module:
    try:
        lines, _ = inspect.findsource(code)
        tree = compile("".join(lines), "<source>", "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True, optimize=0)
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):  # no file, or something else is in it by now
        return ast.Module([], [])
    assert isinstance(tree, ast.Module)
    return tree


class _Source:
    """The definitions in a file, by the line on which their code begins."""

    def __init__(self, tree: ast.Module, flags: int) -> None:
        self._flags = flags
        self._by_line: dict[int, list[tuple[Any, ast.stmt]]] = {}
        for statement in tree.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                    self._by_line.setdefault(_first_line(node), []).append((node, statement))

    def definitions(self, code: types.CodeType, compiled: tuple[Any, ...]) -> Iterator[str]:
        """Yield the definitions on a function's line that compile to its code."""
        for node, statement in self._by_line.get(code.co_firstlineno, ()):
            if self._compile(node, statement) == compiled:
                yield _shape(node)

    def _compile(self, node: Any, statement: ast.stmt) -> tuple[Any, ...] | None:
        """Return the compiled code of a definition, moved far below to distinguish it from others on its line."""
        _move(node, _BELOW)
        line, name = _first_line(node), getattr(node, "name", "<lambda>")
        pending = [compile(ast.Module([statement], []), "<source>", "exec", self._flags, dont_inherit=True)]
        _move(node, -_BELOW)
        for code in pending:  # which grows meanwhile: those inside of the definition come later
            if (code.co_firstlineno, code.co_name) == (line, name):
                return _compiled(code)
            pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        return None


def _first_line(node: Any) -> int:
    first: int = next(iter(getattr(node, "decorator_list", ())), node).lineno
    return first


def _move(definition: Any, lines: int) -> None:
    """Move a whole definition, for what is compiled depends on what is on the same line."""
    body = definition.body if isinstance(definition, ast.Lambda) else None  # defaults may be lambdas themselves
    inside: list[Any] = [definition, *ast.walk(body)] if body else list(ast.walk(definition))
    classes = [node for node in inside if isinstance(node, ast.ClassDef)] if _CLASSES_KNOW_THEIR_LINE else []
    stay = {id(node) for one in classes for node in (one, *one.decorator_list[:1])}
    for node in inside:
        if hasattr(node, "lineno") and id(node) not in stay:
            node.lineno += lines
            node.end_lineno += lines


def _shape(definition: ast.AST) -> str:
    """Return a syntax tree without places, the same in every Python; what decorators do is in the function itself."""
    parts: list[str] = []
    pending: list[Any] = [definition]
    while pending:  # and no recursion: sums can be long
        value = pending.pop()
        if isinstance(value, ast.AST):
            fields = {name: child for name, child in ast.iter_fields(value) if child is not None and child != []}
            for name in ("kind", "type_comment", *(("decorator_list",) if value is definition else ())):
                fields.pop(name, None)
            parts.append(f"{type(value).__name__}({','.join(fields)})")
            pending += reversed(fields.values())
        elif isinstance(value, list):
            parts.append(f"[{len(value)}]")
            pending += reversed(value)
        else:
            parts.append(repr(value))
    return " ".join(parts)


def _compiled(code: types.CodeType) -> tuple[Any, ...]:
    """Return compiled code without places, as data that can be compared and written down."""
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_name, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    return counts, names, code.co_code, code.co_exceptiontable, tuple(map(_constant, code.co_consts))


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _compiled(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    if isinstance(value, frozenset):
        return frozenset, sorted(map(repr, map(_constant, value)))
    return repr(value)  # 1 and True are equal, and not the same
