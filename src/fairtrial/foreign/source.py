"""A file with results: its identity, its beginning for recognising it, and its content within limits."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.misfit import reason_of

MAX_DOCUMENT = 2**30  # bytes of one JSON document, unpacked
MAX_LINE = 64 * 2**20
_HEAD = 2**16
_GZIP = b"\x1f\x8b"


class Source:
    """One file; packed with gzip, it is read as if it were not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stopped = ""  # why reading ended before the end of the file

    @property
    def name(self) -> str:
        """Its name without folders and without `.gz`."""
        return self.path.name.removesuffix(".gz")

    @property
    def suffix(self) -> str:
        """The ending of its name, in lower case."""
        return Path(self.name).suffix.lower()

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of its bytes."""
        with Reading(self), self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def head(self) -> bytes:
        """Its beginning, unpacked."""
        with Reading(self), self.open() as file:
            return file.read(_HEAD)

    def beside(self, name: str) -> Source | None:
        """Return the file of this name in the same folder, packed or not."""
        paths = (self.path.parent / f"{name}{packed}" for packed in ("", ".gz"))
        return next((Source(path) for path in paths if path.is_file()), None)

    def open(self) -> IO[bytes]:
        """Open it for reading, unpacked."""
        with Reading(self):
            file = self.path.open("rb")
            packed = file.read(2) == _GZIP
            file.seek(0)
            return gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[return-value]

    @cached_property
    def document(self) -> Any:
        """Its content as one JSON document; kept, since several readers look at it."""
        content = self._content()
        if len(content) > MAX_DOCUMENT:
            raise FairtrialError(f"{self.name} is larger than {MAX_DOCUMENT // 2**20} MB: split it, or export less")
        try:
            return decode(content)
        except ValueError as error:
            raise FairtrialError(f"{self.name} is not valid JSON ({reason_of(error)}): is it complete?") from None

    def _content(self) -> bytes:
        with Reading(self), self.open() as file:
            return file.read(MAX_DOCUMENT + 1)

    def release(self) -> None:
        """Forget the document."""
        for kept in ("document", "_first_line"):
            with suppress(AttributeError):
                delattr(self, kept)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the document at its top; empty if it is not a JSON object."""
        if not self.looks_like_json or self._has_lines:
            return frozenset()
        content = self._content()
        try:  # without making objects of what stands below
            return frozenset(msgspec.json.decode(content, type=dict[str, msgspec.Raw]))
        except (ValueError, RecursionError):
            pass
        try:
            document = decode(content)
        except ValueError:
            return frozenset()
        return frozenset(document) if isinstance(document, dict) else frozenset()

    @property
    def looks_like_json(self) -> bool:
        """Whether it begins as a JSON object or list."""
        return self.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first line as a JSON object; empty if it is none."""
        try:
            record = decode(self._first_line)
        except ValueError:
            return {}
        return record if isinstance(record, dict) else {}

    @cached_property
    def _first_line(self) -> bytes:
        line = self.head.lstrip().split(b"\n", 1)[0]
        if len(line) < _HEAD:
            return line
        with Reading(self), self.open() as file:
            return file.readline(MAX_LINE + 1)

    @property
    def _has_lines(self) -> bool:
        """Whether its first line is an object of its own, and others follow, so that all of it is not a document."""
        try:
            msgspec.json.decode(self._first_line, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            return False
        with Reading(self), self.open() as file:
            while not (line := file.readline(MAX_LINE + 1)).strip() and line:
                pass
            return bool(file.read(_HEAD).strip())

    def check_first_line(self) -> None:
        """Refuse lines of JSON that are too long for telling what they are."""
        if self.suffix == ".jsonl" and len(self._first_line) > MAX_LINE:
            raise _too_long(self.name, 1)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of its lines. A broken last line ends the reading: the writer was interrupted."""
        number, broken = 0, 0
        with Reading(self), self.open() as file:
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise _too_long(self.name, number)
                if not line.strip():
                    continue
                if broken:
                    raise FairtrialError(f"{self.name}, line {broken} is not valid JSON: fix or remove the line")
                try:
                    record = decode(line)
                except ValueError:
                    broken = number
                    continue
                if not isinstance(record, dict):
                    raise FairtrialError(f"{self.name}, line {number} is not a JSON object")
                yield record
        if broken:
            self.stopped = f"{self.name} ends in the middle of line {broken}"


def _too_long(name: str, line: int) -> FairtrialError:
    return FairtrialError(
        f"{name}, line {line} is longer than {MAX_LINE // 2**20} MB: export fewer answers or shorter ones, or give a "
        "table with columns for case, arm and score"
    )


class Reading:
    """Turns errors of reading into one sentence."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        name = self.source.path.name
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            raise FairtrialError(f"{name} is damaged or cut off ({error}): copy it again") from None
        if isinstance(error, OSError):
            raise FairtrialError(f"{name} cannot be read: {error.strerror or error}") from None


def decode(content: bytes) -> Any:
    """Decode JSON; NaN and Infinity, which JSON does not have but Python writes, become None."""
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        text = content.decode("utf-8-sig", "replace")
        if not ("NaN" in text or "Infinity" in text or text.encode() != content):
            raise ValueError(str(error)) from None
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
