"""`.jsonl`, `.ndjson`: one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from fairtrial.tables.row import MAX_LINE, Row, TableError, TableOptions, depth_problem, too_long
from fairtrial.tables.text import encoding_of, open_bytes, open_text, text_lines, undecodable

_BOM = b"\xef\xbb\xbf"


def rows(path: Path, options: TableOptions) -> Iterator[Row]:
    """Yield the rows of a file with one object per line."""
    for number, line in enumerate(_lines(path, encoding_of(path, options.encoding)), 1):
        if not line.isspace():
            yield object_row(number, line)


def _lines(path: Path, encoding: str) -> Iterator[bytes | str]:
    if not encoding.startswith("utf-8"):
        with open_text(path, encoding) as texts:
            yield from text_lines(texts)
        return
    with open_bytes(path) as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE), b""), 1):
            if len(line) >= MAX_LINE:
                raise too_long(number)
            yield line.removeprefix(_BOM) if number == 1 else line


def object_row(number: int, text: bytes | str | msgspec.Raw) -> Row:
    """Return the row that a JSON text stands for, or its problem."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Row(number, {}, json_problem(error, text, number))
    if not isinstance(value, dict):
        return Row(number, {}, "a row must be a JSON object")
    return Row(number, value, depth_problem(value))


def json_problem(error: Exception, text: bytes | str | msgspec.Raw, line: int) -> str:
    """Return what is wrong with a JSON text; raise TableError if it is not even text."""
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        raise undecodable(error, line) from None
    if isinstance(text, bytes):
        if b"\0" in text:
            raise TableError("NUL bytes: the file is not JSON text", line) from None
        try:
            text.decode()
        except UnicodeDecodeError as undecoded:
            raise undecodable(undecoded, line) from None
    return f"invalid JSON: {error}"
