"""Recorded calls of models, from the traces of other tools, one format per file.

Every format has `calls(path)`, which yields the calls in a file one after the other, `asides(path)`, which yields the
tools and retrieved texts next to them, and `recognises(path, head)`, which says whether a file that begins like this is
one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.traces import Aside, Call
from fairtrial.tables.row import TableError
from fairtrial.tables.text import open_bytes

__all__ = ["FORMATS", "Aside", "Call", "asides_of", "calls_of", "format_of"]

FORMATS = tuple(registry.listed("traces"))  # in the order in which they are tried
_HEAD = 1 << 16
_ASIDES = re.compile(rb"RETRIEVER|TOOL|execute_tool|retrieval", re.IGNORECASE)  # a file without them is read once less


def format_of(path: Path) -> str:
    """Return the format of a file, by what is at its beginning."""
    try:
        with open_bytes(path) as file:
            head = file.read(_HEAD)
    except (OSError, EOFError) as error:
        raise FairtrialError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for name, form in registry.parts("traces").items():
        if form.recognises(path, head):
            return name
    raise FairtrialError(f"{path} is not a known file of traces; say what it is with --format")


def calls_of(path: Path, form: str | None = None) -> Iterator[Call]:
    """Yield every call in a file; one that cannot be read ends with a sentence that says where."""
    yield from _read(path, form, "calls")


def asides_of(path: Path, form: str | None = None) -> Iterator[Aside]:
    """Yield the tools that were called and the texts that were retrieved, other than the calls, in a file."""
    with_asides = False
    tail = b""
    with open_bytes(path) as file:
        while not with_asides and (chunk := file.read(1 << 20)):
            with_asides = _ASIDES.search(tail + chunk) is not None
            tail = chunk[-64:]
    if with_asides or path.suffix == ".parquet":
        yield from _read(path, form, "asides")


def _read(path: Path, form: str | None, what: str) -> Iterator[Any]:
    name = form or format_of(path)
    if name not in FORMATS:
        raise FairtrialError(f"there is no format `{name}` of traces; the formats are {', '.join(FORMATS)}")
    try:
        yield from getattr(registry.load("traces", name), what)(path)
    except TableError as error:
        place = f"{path}:{error.line}" if error.line else path
        raise FairtrialError(f"{place}: {error}") from None
    except (OSError, EOFError) as error:
        raise FairtrialError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
