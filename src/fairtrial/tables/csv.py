"""`.csv` and `.tsv`: text with a header, whose delimiter is found out unless it is set."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from fairtrial.tables.delimiter import find_delimiter
from fairtrial.tables.row import MAX_LINE, Row, TableError, TableOptions, column_names
from fairtrial.tables.text import encoding_of, open_text, text_lines

_SAMPLE_LINES, _SAMPLE_LENGTH = 200, 2**20
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
        declared[1] if declared else find_delimiter(sample, options.columns, usual, quoting)
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
