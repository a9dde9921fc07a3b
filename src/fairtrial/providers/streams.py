"""Read what a server sends within size limits: bodies, decompressed in pieces, and server-sent events."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Protocol

from fairtrial.providers.unpacking import UnknownEncodingError, unpacked

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_MAX_BODY = 32 * 2**20  # bytes of a reply, decompressed
_MAX_EVENT = 4 * 2**20
_MAX_ERROR = 2**18
_BOM = b"\xef\xbb\xbf"
_UTF8 = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


class AnswerTooLargeError(Exception):
    """A server sent more than the size limit for an answer."""


async def read_body(response: ClientResponse) -> bytes:
    """Read a whole body, decompressed and limited in size."""
    length = response.content_length
    if length is not None and length <= _MAX_BODY and "Content-Encoding" not in response.headers:
        return _in_utf8(await response.read(), response.charset)
    parts, size = [], 0
    async for piece in pieces(response):
        size += len(piece)
        if size > _MAX_BODY:
            raise AnswerTooLargeError(f"a reply of more than {_MAX_BODY >> 20} MB")
        parts.append(piece)
    return _in_utf8(b"".join(parts), response.charset)


async def read_beginning(response: ClientResponse) -> bytes:
    """Read the start of an error's body."""
    body = b""
    try:
        async for piece in pieces(response):
            body += piece
            if len(body) >= _MAX_ERROR:
                break
    except (zlib.error, UnknownEncodingError):
        pass  # use what could be read
    return body[:_MAX_ERROR]


def pieces(response: ClientResponse) -> AsyncIterator[bytes]:
    """Return a body as it arrives, decompressed."""
    return unpacked(response.content.iter_any(), response.headers.get("Content-Encoding", ""))


def _in_utf8(body: bytes, charset: str | None) -> bytes:
    """Return a body in UTF-8, which JSON is in whatever a header says; only what is not may be in that charset."""
    if charset is None or charset.lower() in _UTF8:
        return body
    try:
        body.decode()
        return body
    except UnicodeDecodeError:
        pass
    try:
        return body.decode(charset).encode()
    except (LookupError, ValueError):
        return body


class EventParser(Protocol):
    """Finds the events in what a server sends piece by piece."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Add a chunk; return the data of every event that it completes."""

    def end(self) -> Iterable[bytes]:
        """Return the data of what is left when the stream ends."""


class EventStream:
    """A parser for server-sent events by the standard, with any line ending and any split into chunks."""

    def __init__(self) -> None:
        self._begun = self._after_cr = False
        self._unfinished: list[bytes] = []  # pieces of an incomplete line; joined once
        self._data: list[bytes] = []  # the `data` lines of an incomplete event
        self._line_size = self._data_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the `data` of every event that it completes."""
        if self._begun and not self._unfinished and not self._data and _is_one_event(chunk):  # the usual case
            self._after_cr = False
            return [data] if (data := chunk[6:-2].strip()) else []
        if not self._begun:
            chunk = b"".join([*self._unfinished, chunk])
            self._unfinished = []
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._unfinished.append(chunk)
                return []
            chunk, self._begun = chunk.removeprefix(_BOM), True
        events = self._take(self._lines(chunk))
        if self._line_size + self._data_size > _MAX_EVENT:
            raise AnswerTooLargeError(f"an event of more than {_MAX_EVENT >> 20} MB")
        return events

    def end(self) -> list[bytes]:
        """Return what is left when the stream ends; many servers omit the last blank line."""
        return self._take([b"".join(self._unfinished), b""])

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._after_cr and chunk.startswith(b"\n"):  # the second half of a CRLF
            chunk, self._after_cr = chunk[1:], False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif chunk:
            self._after_cr = False
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._unfinished:
            lines[0] = b"".join([*self._unfinished, lines[0]])
            self._unfinished.clear()
            self._line_size = 0
        if rest:
            self._unfinished.append(rest)
            self._line_size += len(rest)
        return lines

    def _take(self, lines: list[bytes]) -> list[bytes]:
        """Return the data of the events that these lines complete; events without data are skipped."""
        events = []
        for line in lines:
            if line.startswith(b"data:") or line == b"data":
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._data_size += len(line)
            elif not line and self._data:
                data = b"\n".join(self._data).strip()
                self._data.clear()
                self._data_size = 0
                events += [data] if data else []
        return events


def _is_one_event(chunk: bytes) -> bool:
    """Return whether a chunk is exactly one single-line event, as servers usually send while streaming."""
    return chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") and chunk.count(b"\n") == 2 and b"\r" not in chunk
