"""AWS's binary event stream: frames with headers, a payload and checksums, which botocore takes long to decode.

https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple
from zlib import crc32

_PRELUDE = struct.Struct(">III")  # length of the frame, length of its headers, checksum of both
_CHECKSUM = struct.Struct(">I")
_AROUND = _PRELUDE.size + _CHECKSUM.size  # bytes of a frame other than headers and payload
_MAX_HEADERS = 128 * 2**10
_MAX_PAYLOAD = 24 * 2**20
_BYTES, _TEXT, _UUID = 6, 7, 9  # types of headers
_FLAGS = {0: True, 1: False}
_NUMBERS = {kind: struct.Struct(code) for kind, code in {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}.items()}


class DamagedError(Exception):
    """Bytes that are not a frame, or not as they were sent."""


class Frame(NamedTuple):
    """One message of a stream."""

    headers: Mapping[str, Any]
    payload: bytes


class Frames:
    """A decoder for a stream of frames that is cut into chunks anywhere."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []  # pieces of an incomplete frame; joined once
        self._size = 0
        self._needed = _PRELUDE.size  # bytes without which there is nothing to decode

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Add a chunk; yield every frame that it completes."""
        self._unfinished.append(chunk)
        self._size += len(chunk)
        if self._size < self._needed:
            return
        data, start = b"".join(self._unfinished), 0
        while True:
            self._needed = _length(data, start)
            if start + self._needed > len(data):
                break
            yield _frame(data, start, start + self._needed)
            start += self._needed
        self._unfinished = [data[start:]] if start < len(data) else []
        self._size = len(data) - start


def _length(data: bytes, start: int) -> int:
    """Return the length of the frame that starts here, or of its prelude if that is not complete."""
    if len(data) - start < _PRELUDE.size:
        return _PRELUDE.size
    length, headers, checksum = _PRELUDE.unpack_from(data, start)
    _check(data[start : start + 8], checksum)
    if headers > _MAX_HEADERS:
        raise DamagedError(f"headers of {headers} bytes, more than the {_MAX_HEADERS} that are allowed")
    if not 0 <= length - headers - _AROUND <= _MAX_PAYLOAD:
        raise DamagedError(f"a frame of {length} bytes with headers of {headers}")
    return int(length)


def _frame(data: bytes, start: int, end: int) -> Frame:
    _, length, prelude = _PRELUDE.unpack_from(data, start)
    begin, last = start + _PRELUDE.size, end - _CHECKSUM.size
    _check(data[begin - 4 : last], _CHECKSUM.unpack_from(data, last)[0], prelude)
    return Frame(_headers(data[begin : begin + length]), data[begin + length : last])


def _check(data: bytes, expected: int, before: int = 0) -> None:
    if (found := crc32(data, before)) != expected:
        raise DamagedError(f"checksum mismatch: expected 0x{expected:08x}, calculated 0x{found:08x}")


@lru_cache(maxsize=32)  # events of one type have the same headers
def _headers(data: bytes) -> Mapping[str, Any]:
    headers: dict[str, Any] = {}
    at = 0
    try:
        while at < len(data):
            raw, at = _sized(data, at + 1, data[at])
            name = raw.decode()
            if name in headers:
                raise DamagedError(f"the header {name!r} twice")
            headers[name], at = _value(data, at)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise DamagedError(f"headers that cannot be read: {error}") from None
    return MappingProxyType(headers)  # shared by all frames that have them


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """Return the value of a header, whose type is at this place, and where the next header starts."""
    kind, at = data[at], at + 1
    if kind in (_BYTES, _TEXT):
        value, end = _sized(data, at + 2, int.from_bytes(data[at : at + 2]))
        return value if kind == _BYTES else value.decode(), end
    if kind == _UUID:
        return _sized(data, at, 16)
    if kind in _FLAGS:
        return _FLAGS[kind], at
    if kind not in _NUMBERS:
        raise DamagedError(f"a header of the unknown type {kind}")
    return _NUMBERS[kind].unpack_from(data, at)[0], at + _NUMBERS[kind].size


def _sized(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise DamagedError("a header that does not end")
    return data[at : at + size], at + size
