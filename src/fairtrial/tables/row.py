"""What all formats share: a row, the options, and the conversion of cells into plain values."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import msgspec

MAX_LINE = 64 * 2**20  # bytes, or characters: of one line or cell
MAX_DEPTH = 100  # of lists and mappings in a cell: later steps are recursive
_PLAIN = frozenset({str, int, bool, type(None)})


class Row(NamedTuple):
    """One row of a table, or the reason why it cannot be read."""

    line: int
    fields: dict[str, Any]
    problem: str = ""


class TableError(ValueError):
    """A table that cannot be read any further: one sentence for the user, and the line."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class TableOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a table; None: found out from the file."""

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    records: str | None = None
    columns: tuple[str, ...] = ()  # that the table should have; they help to find the delimiter


def too_long(line: int) -> TableError:
    """Return the error for a line that is too long to be a row."""
    return TableError(f"the line is longer than {MAX_LINE // 2**20} MB: is this the right file?", line)


def column_names(cells: list[Any]) -> list[str]:
    """Return the names in a header; a column without a name is called after its position."""
    names = [str(cell).strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise TableError(f"duplicate columns in the header: {', '.join(duplicates)}", 1)
    return names


def plain(value: Any) -> Any:
    """Return a cell as JSON has it: times in ISO 8601, decimals as text, NaN as empty, bytes by their number."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f"<binary, {len(value)} bytes>"
    return str(value)


def depth_problem(fields: dict[str, Any]) -> str:
    """Return the problem of a row with a cell that is nested too deeply; empty if there is none."""
    level = [cell for cell in fields.values() if isinstance(cell, list | dict)]
    for _ in range(MAX_DEPTH):
        if not level:
            return ""
        level = [item for item in chain.from_iterable(map(_items, level)) if isinstance(item, list | dict)]
    return f"a cell is nested more than {MAX_DEPTH} levels deep"


def _items(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)
