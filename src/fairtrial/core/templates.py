"""Templates in prompts: Jinja2 in a sandbox. What is filled in is data, and is never a template itself.

A name that has no value is an error, never an empty text. Nothing in a template can reach files, other templates or
Python's internals, and nothing can make a text grow beyond a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.errors import FairtrialError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

_MARKS = ("{{", "{%", "{#")
_MAX_CHARACTERS = 10_000_000  # of a filled-in template
_TOO_LONG = f"a filled-in template may have at most {_MAX_CHARACTERS:,} characters"
_NAME = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}")
_KEYWORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
_KEYWORDS |= {"range", "self", "loop", "super", "caller", "varargs", "kwargs"}
_MAX_PRODUCT = 1_000_000  # characters or items that a multiplication may make
_MAX_EXPONENT = 64
_MAX_STEPS = 10_000  # of one `range()`
# What makes a text as long as a number says: not needed in prompts, and a way to fill the memory.
_GROWING_FILTERS = ("center", "format", "indent", "slice", "batch")
_GROWING_METHODS = frozenset({"center", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill"})


class TemplateError(FairtrialError):
    """A template that cannot be read, or cannot be filled in."""


def is_template(text: str) -> bool:
    """Return whether a text has placeholders, statements or comments."""
    return any(mark in text for mark in _MARKS)


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the names that a template uses; raise TemplateError if it is not a template."""
    if not is_template(text):
        return frozenset()
    if (pieces := _simple(text)) is not None:
        return frozenset(pieces[1::2])
    from jinja2 import meta

    with _errors_in_words():
        return frozenset(meta.find_undeclared_variables(_environment().parse(text)))


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return a template with values filled in; raise TemplateError if a name has no value."""
    if not is_template(text):
        return text
    if (simple := _simple(text)) is not None:
        return _fill_simple(simple, values)
    pieces: list[str] = []
    size = 0
    with _errors_in_words():
        for piece in _compiled(text).generate(values):
            size += len(piece)
            if size > _MAX_CHARACTERS:
                raise TemplateError(_TOO_LONG)
            pieces.append(piece)
    return "".join(pieces)


@lru_cache(maxsize=4096)
def _simple(text: str) -> tuple[str, ...] | None:
    """Return the texts and names, in turn, of a template that has only {{ name }}; None of any other.

    Most templates are like that, and are filled in several times as fast without Jinja2, with the same result.
    """
    pieces = _NAME.split(text)
    texts, names = pieces[::2], pieces[1::2]
    marked = any(mark in piece for piece in texts for mark in _MARKS) or any(piece[-1:] == "{" for piece in texts[:-1])
    if marked or not _KEYWORDS.isdisjoint(names):
        return None
    return tuple(pieces)


def _fill_simple(pieces: tuple[str, ...], values: Mapping[str, Any]) -> str:
    filled = list(pieces)
    for place in range(1, len(filled), 2):
        name = filled[place]
        if name not in values:
            raise TemplateError(f"`{name}` is undefined")
        filled[place] = str(_as_text(values[name]))
    text = "".join(filled)
    if len(text) > _MAX_CHARACTERS:
        raise TemplateError(_TOO_LONG)
    return text


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn what Jinja2 and the code of a template raise into a TemplateError."""
    try:
        yield
    except TemplateError:
        raise
    except Exception as error:
        raise TemplateError(_in_words(error)) from None


def _in_words(error: Exception) -> str:
    from jinja2 import TemplateSyntaxError, UndefinedError
    from jinja2.exceptions import SecurityError

    message = str(error)
    if isinstance(error, UndefinedError):
        return message.replace("'", "`") if message else "a name has no value"
    if isinstance(error, TemplateSyntaxError):
        return f"not a valid template: {error.message} (line {error.lineno} of it)"
    if isinstance(error, SecurityError):
        return f"not allowed in a template: {message}"
    if isinstance(error, RecursionError):
        return "the template is nested too deeply"
    return f"the template cannot be filled in: {message or type(error).__name__}"


def _as_text(value: Any) -> Any:
    """Write lists and mappings as JSON, and nothing for a missing value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict | tuple):
        return msgspec.json.encode(value).decode()
    return value


def _limited_range(*args: int) -> range:
    steps = range(*args)
    if len(steps) > _MAX_STEPS:
        from jinja2.exceptions import SecurityError

        raise SecurityError(f"a range of more than {_MAX_STEPS:,} numbers")
    return steps


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if operator == "%" and not numbers:
                raise SecurityError("% with text")
            if operator == "**" and (not numbers or abs(right) > _MAX_EXPONENT or abs(left) > _MAX_PRODUCT):
                raise SecurityError("a power this large")
            if operator == "*" and not numbers:
                count, thing = (left, right) if isinstance(left, int) else (right, left)
                if not isinstance(count, int) or count * len(thing) > _MAX_PRODUCT:
                    raise SecurityError("a text this long")
            return super().call_binop(context, operator, left, right)

        def wrap_str_format(self, value: Any) -> None:
            """Let `is_safe_attribute` decide on `str.format`, as on all methods: a width makes a text of any length."""

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            growing = isinstance(obj, str) and attr in _GROWING_METHODS
            return not growing and super().is_safe_attribute(obj, attr, value)

    environment = Environment(undefined=StrictUndefined, finalize=_as_text, keep_trailing_newline=True)
    for name in _GROWING_FILTERS:
        del environment.filters[name]
    environment.globals = {"range": _limited_range}
    return environment
