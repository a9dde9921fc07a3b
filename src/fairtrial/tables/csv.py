"""`.csv` and `.tsv`: text with a header, whose delimiter is found out unless it is set."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

from fairtrial.tables.row import MAX_LINE, Row, TableError, TableOptions, column_names
from fairtrial.tables.text import encoding_of, open_text, text_lines

_SAMPLE_LINES, _SAMPLE_LENGTH = 200, 2**20
_CANDIDATES = (",", ";", "\t", "|")
_ROWS = 50
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
_SEP = re.compile(r"sep=(.)\r?\n?")  # a first line that Excel writes and reads


def rows(path: Path, options: TableOptions) -> Iterator[Row]:
    """Yield the rows of a delimited text file."""
    csv.field_size_limit(MAX_LINE)
    encoding = encoding_of(path, options.encoding)
    quoting = _quoting(options.quote)
    with open_text(path, encoding) as file:
        sample = _sample(file)
    declared = _SEP.fullmatch(sample[0]) if sample else None
    usual = "\t" if ".tsv" in path.suffixes[-2:] or ".TSV" in path.suffixes[-2:] else ","
    delimiter = options.delimiter or (
        declared[1] if declared else _find_delimiter(sample, options.columns, usual, quoting)
    )
    with open_text(path, encoding) as file:
        yield from _table_rows(file, delimiter, quoting, skip=1 if declared else 0)


def _quoting(quote: str | None) -> dict[str, Any]:
    if quote == "":
        return {"quoting": csv.QUOTE_NONE}
    return {"quotechar": quote or '"'}


def _sample(file: IO[str]) -> list[str]:
    """Return the first lines, all of them whole."""
    sample, length = [], 0
    for line in islice(text_lines(file), _SAMPLE_LINES):
        sample.append(line)
        length += len(line)
        if length > _SAMPLE_LENGTH:
            break
    return sample


def _table_rows(file: IO[str], delimiter: str, quoting: dict[str, Any], skip: int) -> Iterator[Row]:
    lines = islice(text_lines(file), skip, None)
    # Strict: an unclosed quote is an error instead of silently swallowing the rest of the file.
    reader = csv.reader(lines, delimiter=delimiter, strict=True, **quoting)
    try:
        names = column_names(next(reader, []))
        width = len(names)
        for cells in reader:
            if len(cells) == width:
                yield Row(reader.line_num + skip, dict(zip(names, cells, strict=True)))
            elif cells:  # blank lines are no rows
                more = "more" if len(cells) > width else "fewer"
                yield Row(
                    reader.line_num + skip, {}, f"{more} fields than columns in the header ({len(cells)}, not {width})"
                )
    except csv.Error as error:
        raise TableError(f"the table cannot be read: {_in_words(str(error))}", reader.line_num + skip) from None


def _in_words(message: str) -> str:
    if "field larger than field limit" in message:
        return f"a cell is longer than {MAX_LINE // 2**20} MB, perhaps because a quote is not closed"
    if "unexpected end of data" in message:
        return "a quote is not closed"
    return message


def _find_delimiter(lines: Sequence[str], columns: Sequence[str], usual: str, quoting: dict[str, object]) -> str:
    """Return the delimiter of a table, from its header and first rows; an ambiguous one is refused, not guessed.

    Args:
        lines: The first lines, all of them whole.
        columns: Names that the header should have.
        usual: The delimiter by the file's name, for tables with one column.
        quoting: How cells are quoted, as arguments of `csv.reader`.
    """
    tables = {mark: _parse(lines, mark, quoting) for mark in _CANDIDATES}
    likely = [mark for mark, table in tables.items() if table and len(table[0]) > 1]
    if not likely:
        return usual
    named = [mark for mark in likely if set(columns) <= {name.strip() for name in tables[mark][0]}]
    likely = named or likely
    even = [mark for mark in likely if len({len(row) for row in tables[mark]}) == 1]
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
