"""What servers compress: gzip, zlib or plain deflate, unpacked in pieces; what was packed twice is unpacked twice."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

_PIECE = 2**16  # bytes that are decompressed at a time
_PLAIN = frozenset({"", "identity"})
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_MOST_LAYERS = 4
_GZIP = b"\x1f\x8b"
_NOT_PACKED = (b"{", b"[", b"da", b"ev")  # JSON and events, which some proxies only call compressed
_EITHER, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS  # with the header of gzip or zlib; without


class UnknownEncodingError(Exception):
    """A body in a compression that was not asked for."""


def unpacked(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Return a body as it arrives, decompressed; `encoding` is what its header says."""
    layers = [name for name in map(str.strip, encoding.lower().split(",")) if name not in _PLAIN]
    unknown = [name for name in layers if name not in _PACKED]
    if unknown or len(layers) > _MOST_LAYERS:
        names = ", ".join(unknown or layers)[:40]
        raise UnknownEncodingError(
            f"an answer compressed as `{names}`, although it was asked for gzip, deflate or none"
        )
    for _ in layers:
        chunks = _inflated(chunks)
    return chunks


async def _inflated(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    begun = b""
    async for chunk in chunks:
        begun += chunk
        if len(begun) > 1:
            break
    inner = _as_it_is if begun.startswith(_NOT_PACKED) else _members
    async for piece in inner(begun, chunks):
        yield piece


async def _as_it_is(begun: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield begun
    async for chunk in rest:
        yield chunk


async def _members(begun: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Inflate one part after another: gzip may consist of several."""
    inflater = zlib.decompressobj(_EITHER if _has_header(begun) else _BARE)
    remaining = begun
    while True:
        while remaining:
            if inflater.eof:
                if not remaining.startswith(_GZIP):
                    return  # padding behind the last part
                inflater = zlib.decompressobj(_EITHER)
            if piece := inflater.decompress(remaining, _PIECE):
                yield piece
            remaining = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        try:
            remaining = await anext(rest)
        except StopAsyncIteration:
            break
    if begun and not inflater.eof:
        raise zlib.error("the compressed body is not complete")


def _has_header(body: bytes) -> bool:
    """Return whether a body begins as gzip or zlib does; the two bytes of zlib are a multiple of 31."""
    return body.startswith(_GZIP) or not body or (body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0)
