"""Members of a zip file one by one, with zstd (method 93) too, which `zipfile` learns in Python 3.14.

The directory is streamed, so that a log of 100,000 samples takes no more memory than a small one. A file without its
directory, whose writer was killed, is read from the front.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

STORED, DEFLATED, ZSTD = 0, 8, 93
_LOCAL, _ENTRY, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64, _LOCATOR64 = b"PK\x06\x06", b"PK\x06\x07"
_HEAD = struct.Struct("<4s4xHH8xIIHHH8xI")  # of an entry of the directory
_LONGEST_ENTRY, _CHUNK = _HEAD.size + 3 * 0xFFFF, 2**20
_TAIL = 2**16 + 22
_UNKNOWN = 0xFFFFFFFF
_HIDDEN = 0x0041  # encrypted
_SIZE_FOLLOWS = 0x0008
MAX_MEMBER = 256 * 2**20
_MAX_RATIO, _ALWAYS_ALLOWED = 1000, 4 * 2**30  # of all members together, against bombs


class ZipError(ValueError):
    """What is wrong with a zip file, in words."""


class Member(NamedTuple):
    """A file in a zip file."""

    name: str
    method: int
    packed: int
    size: int
    offset: int
    flags: int


class Zip:
    """Reads members of an open file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._length = file.seek(0, 2)
        self._unpacked = 0
        self.directory = self._find_directory()

    def members(self) -> Iterator[Member]:
        """Yield every member in the order of the directory; without one, in the order of the file."""
        return self._scan() if self.directory is None else self._listed(*self.directory)

    def read(self, member: Member) -> bytes:
        """Return the content of a member."""
        if member.flags & _HIDDEN:
            raise ZipError(f"{member.name} is encrypted")
        if member.size > MAX_MEMBER:
            raise ZipError(f"{member.name} is larger than {MAX_MEMBER // 2**20} MB")
        header = self._at(member.offset, 30)
        if header[:4] != _LOCAL:
            raise ZipError("its directory does not fit its content")
        name, extra = struct.unpack_from("<HH", header, 26)
        content = self._unpack(member, self._at(member.offset + 30 + name + extra, member.packed))
        self._unpacked += len(content)
        if self._unpacked > max(_ALWAYS_ALLOWED, _MAX_RATIO * self._length):
            raise ZipError("it unpacks to more than 1000 times its size")
        return content

    def _unpack(self, member: Member, packed: bytes) -> bytes:
        if len(packed) < member.packed:
            raise ZipError(f"{member.name} is cut off")
        try:
            if member.method == STORED:
                return packed
            if member.method == DEFLATED:
                return _whole(zlib.decompressobj(-15).decompress(packed, MAX_MEMBER + 1), member)
            if member.method == ZSTD:
                return _whole(_unzstd(packed), member)
        except zlib.error as error:
            raise ZipError(f"{member.name} is damaged ({error})") from None
        raise ZipError(f"{member.name} is packed with an unknown method ({member.method})")

    def _at(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)

    def _find_directory(self) -> tuple[int, int] | None:
        """Return where the directory begins and how many members it has."""
        tail = self._at(max(0, self._length - _TAIL), _TAIL)
        at = tail.rfind(_END)
        if at < 0 or len(tail) < at + 22:
            return None
        count, _, start = struct.unpack_from("<HII", tail, at + 10)
        if (count == 0xFFFF or start == _UNKNOWN) and (found := tail.rfind(_LOCATOR64, 0, at)) >= 0:
            (place,) = struct.unpack_from("<Q", tail, found + 8)
            end = self._at(place, 56)
            if end[:4] != _END64 or len(end) < 56:
                raise ZipError("its directory is damaged")
            count, _, start = struct.unpack_from("<QQQ", end, 32)
        return start, count

    def _listed(self, start: int, count: int) -> Iterator[Member]:
        position, at, chunk = start, 0, self._at(start, _CHUNK)
        for _ in range(count):
            if len(chunk) - at < _LONGEST_ENTRY and len(chunk) == _CHUNK:  # a shorter chunk is the last one
                position += at
                at, chunk = 0, self._at(position, _CHUNK)
            if len(chunk) - at < _HEAD.size:
                raise ZipError("its directory is damaged")
            mark, flags, method, packed, size, name, extra, comment, offset = _HEAD.unpack_from(chunk, at)
            if mark != _ENTRY:
                raise ZipError("its directory is damaged")
            at += _HEAD.size
            size, packed, offset = _wide(chunk[at + name : at + name + extra], size, packed, offset)
            yield Member(chunk[at : at + name].decode("utf-8", "replace"), method, packed, size, offset, flags)
            at += name + extra + comment

    def _scan(self) -> Iterator[Member]:
        """Yield the whole members of a file without a directory."""
        position = 0
        while True:
            header = self._at(position, 30)
            if len(header) < 30 or header[:4] != _LOCAL:
                return
            flags, method = struct.unpack_from("<HH", header, 6)
            packed, size, name, extra = struct.unpack_from("<IIHH", header, 18)
            rest = self._at(position + 30, name + extra)
            size, packed, _ = _wide(rest[name:], size, packed, 0)
            end = position + 30 + name + extra + packed
            if end > self._length or (flags & _SIZE_FOLLOWS and not packed):
                return
            yield Member(rest[:name].decode("utf-8", "replace"), method, packed, size, position, flags)
            position = end
            if flags & _SIZE_FOLLOWS:
                position += 16 if self._at(position, 4) == b"PK\x07\x08" else 12


def _wide(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Return sizes and offset, from the zip64 field where the ordinary ones are too small for them."""
    if _UNKNOWN not in (size, packed, offset):
        return size, packed, offset
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{length // 8}Q", extra, position + 4))
            return (
                next(numbers, size) if size == _UNKNOWN else size,
                next(numbers, packed) if packed == _UNKNOWN else packed,
                next(numbers, offset) if offset == _UNKNOWN else offset,
            )
        position += 4 + length
    return size, packed, offset


def _whole(content: bytes, member: Member) -> bytes:
    if len(content) > MAX_MEMBER:
        raise ZipError(f"{member.name} is larger than {MAX_MEMBER // 2**20} MB")
    return content


def _unzstd(packed: bytes) -> bytes:
    from fairtrial.tracks.interchange.results._zstd import ZstdDecompressor, ZstdError  # only some archives need it

    unpacker = ZstdDecompressor()
    try:
        return unpacker.decompress(packed, MAX_MEMBER + 1)
    except ZstdError as error:
        raise ZipError(f"a member is damaged ({error})") from None
