"""Reading what a server sends, within bounds: bodies, inflated piece by piece, and server-sent events."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_MOST_BODY = 32 * 2**20  # bytes of a reply, inflated
_MOST_EVENT = 4 * 2**20
_MOST_ERROR = 2**18
_PIECE = 2**16  # bytes that are inflated at a time
_BOM = b"\xef\xbb\xbf"


class TooLargeError(Exception):
    """A server sent more than any answer can be."""


async def read_body(response: ClientResponse) -> bytes:
    """A whole body, inflated and bounded."""
    length = response.content_length
    if length is not None and length <= _MOST_BODY and "Content-Encoding" not in response.headers:
        return await response.read()
    pieces, size = [], 0
    async for piece in _pieces(response):
        size += len(piece)
        if size > _MOST_BODY:
            raise TooLargeError(f"a reply of more than {_MOST_BODY >> 20} MB")
        pieces.append(piece)
    return b"".join(pieces)


async def read_beginning(response: ClientResponse) -> bytes:
    """As much of an error's body as anybody needs."""
    body = b""
    try:
        async for piece in _pieces(response):
            body += piece
            if len(body) >= _MOST_ERROR:
                break
    except zlib.error:
        pass  # what could be read has to do
    return body[:_MOST_ERROR]


async def _pieces(response: ClientResponse) -> AsyncIterator[bytes]:
    """A body as it comes, inflated."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        async for chunk in response.content.iter_any():
            yield chunk
        return
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is; else an error
    async for chunk in response.content.iter_any():
        left = chunk
        while left and not inflater.eof:
            if piece := inflater.decompress(left, _PIECE):
                yield piece
            left = inflater.unconsumed_tail
    if not inflater.eof:
        raise zlib.error("the compressed body is not complete")


class EventStream:
    """Server-sent events as the standard has them: whatever ends the lines, however they are cut into chunks."""

    def __init__(self) -> None:
        self._begun = self._after_cr = False
        self._unfinished: list[bytes] = []  # pieces of a line whose end has not come; joined once
        self._data: list[bytes] = []  # the `data` lines of an event whose end has not come
        self._line_size = self._data_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The `data` of every event that is complete now."""
        if self._begun and not self._unfinished and not self._data and _is_one_event(chunk):  # mostly
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
        if self._line_size + self._data_size > _MOST_EVENT:
            raise TooLargeError(f"an event of more than {_MOST_EVENT >> 20} MB")
        return events

    def end(self) -> list[bytes]:
        """What is left when the stream ends; many servers leave out the last blank line."""
        return self._take([b"".join(self._unfinished), b""])

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._after_cr and chunk.startswith(b"\n"):  # the other half of a CRLF
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
        """The data of the events that these lines end, as far as they have any."""
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
    """Whether a chunk is exactly one event of one line, as servers send them while they speak."""
    return chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") and chunk.count(b"\n") == 2 and b"\r" not in chunk


async def sse_data(response: ClientResponse) -> AsyncIterator[bytes]:
    """The `data` of each server-sent event."""
    events = EventStream()
    plain = "Content-Encoding" not in response.headers
    async for chunk in response.content.iter_any() if plain else _pieces(response):
        for data in events.feed(chunk):
            yield data
    for data in events.end():
        yield data
