"""Text files: opened, unpacked within limits, and decoded."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from fairtrial.tables.row import MAX_LINE, TableError, too_long

# Text shrinks to a fifth, tables of repeated words to a hundredth, files that are made to fill a disk to a thousandth.
MAX_RATIO = 200
FREE_BYTES = 100 * 2**20  # whose ratio does not matter
_BUFFER = 2**18
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading; `.gz` is unpacked on the way."""
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    return io.BufferedReader(_Unpacked(path), _BUFFER)


class _Unpacked(io.RawIOBase):
    """A gzip file that gives up once it unpacks to far more than its size."""

    def __init__(self, path: Path) -> None:
        self._size = path.stat().st_size
        self._file = gzip.GzipFile(path, "rb")
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self._file.readinto(buffer)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"the gzip file is damaged: {error}") from None
        self._count += count
        if self._count > FREE_BYTES and self._count > MAX_RATIO * self._size:
            raise TableError(
                f"the gzip file unpacks to more than {MAX_RATIO} times its size and was not read to its end; "
                "if that is right, unpack it yourself"
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def encoding_of(path: Path, chosen: str | None) -> str:
    """Return the encoding of a file: the chosen one, that of its byte-order mark, or UTF-8."""
    with open_bytes(path) as file:
        start = file.read(4)
    marked = next((name for mark, name in _BOMS if start.startswith(mark)), None)
    if chosen is None:
        return marked or "utf-8"
    try:
        text = "".encode(chosen).decode(chosen)  # refuses unknown names, and codecs that are not for text
    except (LookupError, ValueError):
        text = None
    if text is None:
        raise TableError(f"unknown encoding `{chosen}`: use one such as utf-8, utf-16, cp1252 or latin-1")
    is_utf8 = chosen.lower().replace("_", "-") in ("utf-8", "utf8")
    return "utf-8-sig" if is_utf8 and marked == "utf-8-sig" else chosen


def open_text(path: Path, encoding: str) -> IO[str]:
    """Open a text file; line ends stay as they are."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def text_lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of a text file; refuse those that no table has."""
    number = 0
    try:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE), ""), 1):
            if len(line) >= MAX_LINE:
                raise too_long(number)
            if "\0" in line:
                problem = "NUL bytes: the file is not plain text; if it is UTF-16, set `encoding: utf-16-le`"
                raise TableError(problem, number)
            yield line
    except UnicodeDecodeError as error:
        raise undecodable(error, number + 1) from None


def undecodable(error: UnicodeDecodeError, line: int = 0) -> TableError:
    """Return the error for bytes that are not in the expected encoding, with a guess of the right one."""
    wanted = "UTF-8" if error.encoding.lower().startswith("utf-8") else error.encoding
    byte = error.object[error.start]
    article = "a UTF-8 text file" if wanted == "UTF-8" else f"text in the encoding {wanted}"
    guess = _guess(error.object)
    return TableError(
        f"the file is not {article} (byte 0x{byte:02x}): set `encoding`, perhaps to `{guess}`, or save it as UTF-8",
        line,
    )


def _guess(sample: bytes) -> str:
    """Guess an encoding from bytes that are not UTF-8: what Excel on Windows writes, unless that cannot be."""
    if sample.count(0) > len(sample) // 4:
        return "utf-16-le" if sample[1:2] == b"\0" else "utf-16-be"
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
