"""`.xlsx`, `.xlsm`: one sheet of a workbook, with a header."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from fairtrial.core.errors import NotInstalledError
from fairtrial.tables.row import Row, TableError, TableOptions, column_names, plain
from fairtrial.tables.text import FREE_BYTES, MAX_RATIO

MAX_BYTES = 2 * 2**30  # of all parts, unpacked
MAX_CELLS = 50_000_000  # between the first cell and the last one: the library makes room for all of them
_CHUNK = 2**16
_OVERLAP = 32  # bytes: a cell's name may stand across two chunks
_CELL = re.compile(rb"""r=["']([A-Z]{1,3})([0-9]{1,7})["']""")


def rows(path: Path, options: TableOptions) -> Iterator[Row]:
    """Yield the rows of a sheet; numbers are those that the spreadsheet shows."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise NotInstalledError(f"reading {path.name}", "xlsx") from None
    about = path.stat()
    _check(path, about.st_size, about.st_mtime_ns)
    try:
        with calamine.CalamineWorkbook.from_path(path) as book:
            sheet = book.get_sheet_by_name(_sheet_name(book.sheet_names, options.sheet))
            yield from _sheet_rows(sheet.iter_rows())
    except (calamine.CalamineError, zipfile.BadZipFile) as error:
        raise TableError(f"the workbook cannot be read: {error}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the library; not an Exception, and it has no public name
            raise
        raise TableError("the workbook cannot be read: it is damaged") from None


def _sheet_name(names: list[str], chosen: str | None) -> str:
    if chosen is None and len(names) == 1:
        return names[0]
    listed = ", ".join(names)
    if chosen is None:
        raise TableError(f"the workbook has several sheets: set `sheet` to one of {listed}")
    if chosen not in names:
        raise TableError(f"there is no sheet `{chosen}`: set `sheet` to one of {listed}")
    return chosen


def _sheet_rows(cells: Iterator[list[Any]]) -> Iterator[Row]:
    header: list[str] | None = None
    for number, values in enumerate(cells, 1):
        if all(value == "" for value in values):
            continue
        if header is None:
            header = column_names(values)
            continue
        yield Row(number, {name: _cell(value) for name, value in zip(header, values, strict=False)})


def _cell(value: Any) -> Any:
    """Return a cell's value; whole numbers are stored as fractions in workbooks, but are not meant as such."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return plain(value)


@lru_cache(maxsize=16)  # rows are read several times
def _check(path: Path, size: int, changed: int) -> None:
    """Refuse workbooks that unpack to far more than their size, or whose cells are too far apart."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            left = max(FREE_BYTES, min(MAX_BYTES, MAX_RATIO * size))
            for part in archive.infolist():
                last = _Corner() if part.filename.startswith("xl/worksheets/") else None
                left -= _unpack(file, part, left, last)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise TableError(f"this is not an Excel workbook: {error}") from None


def _unpack(file: IO[bytes], part: zipfile.ZipInfo, left: int, last: _Corner | None) -> int:
    """Return the size of a part by unpacking it: the size that the archive declares may be wrong."""
    file.seek(part.header_offset)
    header = file.read(30)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    unpacker = zlib.decompressobj(-15) if part.compress_type == zipfile.ZIP_DEFLATED else None
    remaining, size = part.compress_size, 0
    while remaining > 0 and (packed := file.read(min(_CHUNK, remaining))):
        remaining -= len(packed)
        while packed:
            data = unpacker.decompress(packed, 2**22) if unpacker else packed
            packed = unpacker.unconsumed_tail if unpacker else b""
            size += len(data)
            if size > left:
                raise TableError(
                    f"the workbook unpacks to more than {MAX_RATIO} times its size and was not read; "
                    "if that is right, save it as .csv"
                )
            if last:
                last.look(data)
    return size


class _Corner:
    """The last row and column of a sheet, from the names of its cells."""

    def __init__(self) -> None:
        self._row = self._column = 0
        self._before = b""

    def look(self, data: bytes) -> None:
        """Look through the next part of a sheet."""
        cells = _CELL.findall(self._before + data)
        if cells:
            columns, rows = map(set, zip(*cells, strict=True))
            self._row = max(self._row, *map(int, rows))
            self._column = max(self._column, *map(_column_number, columns))
        self._before = data[-_OVERLAP:]
        if self._row * self._column > MAX_CELLS:
            raise TableError(
                f"the sheet reaches to row {self._row} and column {self._column}, over {MAX_CELLS // 10**6} million "
                "cells: remove stray cells, or save it as .csv"
            )


def _column_number(name: bytes) -> int:
    number = 0
    for letter in name:
        number = number * 26 + letter - 64
    return number
