"""The delimiter of a table, from its header and first rows; an ambiguous table is refused instead of guessed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from fairtrial.tables.row import TableError

CANDIDATES = (",", ";", "\t", "|")
_ROWS = 50
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}


def find_delimiter(lines: Sequence[str], columns: Sequence[str], usual: str, quoting: dict[str, object]) -> str:
    """Return the delimiter of a table.

    Args:
        lines: The first lines, all of them whole.
        columns: Names that the header should have.
        usual: The delimiter by the file's name, for tables with one column.
        quoting: How cells are quoted, as arguments of `csv.reader`.
    """
    tables = {mark: _parse(lines, mark, quoting) for mark in CANDIDATES}
    likely = [mark for mark, table in tables.items() if table and len(table[0]) > 1]
    if not likely:
        return usual
    named = [mark for mark in likely if set(columns) <= {name.strip() for name in tables[mark][0]}]
    likely = named or likely
    even = [mark for mark in likely if _is_even(tables[mark])]
    likely = even or likely
    if len(likely) == 1:
        return likely[0]
    if usual == "\t" and usual in likely:
        return usual  # the file's name says so
    if not even:  # no way to read it gives a proper table: keep to the name, and report its rows
        return usual if usual in likely else likely[0]
    choices = " or ".join(_NAMES[mark] for mark in likely)
    raise TableError(f"the columns may be separated by {choices}: set `delimiter` on the dataset", 1)


def _parse(lines: Sequence[str], mark: str, quoting: dict[str, object]) -> list[list[str]]:
    reader = csv.reader(lines, delimiter=mark, strict=True, **quoting)  # type: ignore[arg-type]
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a quote in the wrong place, or a cell that goes on after the sample
        rows.extend(row for row in islice(reader, _ROWS) if row)
    return rows


def _is_even(rows: list[list[str]]) -> bool:
    return len({len(row) for row in rows}) == 1
