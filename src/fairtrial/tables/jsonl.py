"""`.jsonl`, `.ndjson`: one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

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
    value, problem = decode(text, number)
    if problem:
        return Row(number, {}, problem)
    if not isinstance(value, dict):
        return Row(number, {}, "a row must be a JSON object")
    return Row(number, value, depth_problem(value))


def decode(text: bytes | str | msgspec.Raw, line: int, type: Any = Any) -> tuple[Any, str]:
    """Return (value, problem) of a JSON text; raise TableError if it is not even text."""
    try:
        return msgspec.json.decode(text, type=type), ""
    except RecursionError:
        return None, "the JSON is nested too deeply"
    except UnicodeDecodeError as error:
        raise undecodable(error, line) from None
    except msgspec.DecodeError as error:
        if b"\0" in (text if isinstance(text, bytes) else b""):
            raise TableError("NUL bytes: the file is not JSON text", line) from None
        _check_utf8(text, line)
        return None, f"invalid JSON: {error}"


def _check_utf8(text: bytes | str | msgspec.Raw, line: int) -> None:
    """Tell text in another encoding from text that is not JSON."""
    if isinstance(text, bytes):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise undecodable(error, line) from None
