"""Templates in prompts: Jinja2 in a sandbox. What is filled in is data, and is never a template itself.

A name that has no value is an error, never an empty text. Nothing in a template can reach files, other templates or
Python's internals, and nothing can take more time or memory than a limit (`template_work`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.errors import FairtrialError

if TYPE_CHECKING:
    from jinja2 import Template

    from fairtrial.core.template_work import Environment

_MARKS = ("{{", "{%", "{#")
_MAX_CHARACTERS = 10_000_000  # of a filled-in template
_TOO_LONG = f"a filled-in template may have at most {_MAX_CHARACTERS:,} characters"
_NAME = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}")
_KEYWORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
_KEYWORDS |= {"range", "self", "loop", "super", "caller", "varargs", "kwargs"}


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


def template_problems(text: str, known: Collection[str], where: str) -> Iterator[str]:
    """Yield why a template cannot be filled in with these names."""
    try:
        unknown = sorted(names_in(text) - {*known})
    except TemplateError as error:
        yield str(error)
        return
    if unknown:
        yield f"`{unknown[0]}` is not known {where}; there are: {', '.join(known)}"


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return a template with values filled in; raise TemplateError if a name has no value."""
    if not is_template(text):
        return text
    if (simple := _simple(text)) is not None:
        return _fill_simple(simple, values)
    pieces: list[str] = []
    size = 0
    with _errors_in_words(), _limited_work(text):
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


def _limited_work(text: str) -> AbstractContextManager[None]:
    from fairtrial.core.template_work import limited_work  # Jinja2, which most templates need nothing of

    return limited_work(text)


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


@cache
def _environment() -> Environment:
    # Jinja2 takes long to import, and most templates need none of it.
    from fairtrial.core.template_work import Environment

    return Environment(_as_text)
