"""Objects out of large JSON files, one at a time: the file is never in memory as a whole."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.tables.row import MAX_LINE, TableError
from fairtrial.tables.text import open_bytes

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_CHUNK = 1 << 20
_CLOSES = {b"}": b"{", b"]": b"["}


def objects(path: Path, keys: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in every list under one of these keys; "" is a list at the top."""
    for text in _texts(path, frozenset(keys)):
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TableError(f"a record is not valid JSON: {error}") from None
        if isinstance(value, dict):
            yield value


def _texts(path: Path, keys: frozenset[str]) -> Iterator[bytes]:
    scanner = _Scanner(keys)
    with open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            yield from scanner.feed(chunk)
    if not scanner.done:
        raise TableError("the file ends in the middle of a record: is it complete?")


class _Scanner:
    """Finds where objects begin and end; texts in quotes are passed over."""

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = keys
        self._buffer = bytearray()
        self._position = 0  # up to which the buffer is read
        self._stack: list[tuple[bytes, str]] = []  # what is open, and the key that it stands under
        self._key = ""
        self._start: int | None = None  # of the object that is being read
        self._depth = 0

    @property
    def done(self) -> bool:
        """Whether everything that began has ended."""
        return not self._stack and not self._buffer[self._position :].strip()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Read on, and yield the objects that are complete."""
        self._buffer += chunk
        ready = []
        for match in _TOKEN.finditer(self._buffer, self._position):
            token = match.group()
            if token == b'"':  # a text that goes on in the next chunk
                self._position = match.start()
                break
            self._position = match.end()
            if text := self._take(token, match.start(), match.end()):
                ready.append(text)
        yield from ready
        self._forget()

    def _take(self, token: bytes, start: int, end: int) -> bytes | None:
        if token in (b"{", b"["):
            self._open(token, start)
        elif token in _CLOSES:
            if not self._stack or self._stack[-1][0] != _CLOSES[token]:
                raise TableError("the file is not valid JSON: a bracket closes what was not open")
            self._stack.pop()
            if self._start is not None and len(self._stack) == self._depth:
                text, self._start = bytes(self._buffer[self._start : end]), None
                return text
        elif self._start is None:
            self._key = token[1:-1].decode("utf-8", "replace")
        return None

    def _open(self, token: bytes, start: int) -> None:
        in_object = bool(self._stack) and self._stack[-1][0] == b"{"
        if token == b"{" and self._start is None and self._is_wanted():
            self._start, self._depth = start, len(self._stack)
        self._stack.append((token, self._key if in_object else ""))

    def _is_wanted(self) -> bool:
        if not self._stack:
            return False
        kind, key = self._stack[-1]
        return kind == b"[" and key in self._keys and (key != "" or len(self._stack) == 1)

    def _forget(self) -> None:
        keep = self._position if self._start is None else self._start
        if len(self._buffer) - keep > MAX_LINE:
            raise TableError(f"a record is larger than {MAX_LINE // 2**20} MB: is this the right file?")
        del self._buffer[:keep]
        self._position -= keep
        self._start = None if self._start is None else 0
