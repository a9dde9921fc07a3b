"""The fake vendors, for measuring: the first request of a kind is checked, and the same again is answered at once.

Checks take longer for some APIs than for others. Whoever waits for a slower server wakes up more often, once for every
reply instead of once for several, which would count as a cost of the API.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from tests.servers.vendors import Say, Vendors, dialect_of, served


class Replaying(Vendors):
    """A server that answers what it has checked once without checking it again."""

    def __init__(self) -> None:
        super().__init__()
        self._replies: dict[tuple[str, bytes], tuple[str, list[bytes]]] = {}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        asked = request.raw_path, await request.read()
        if asked not in self._replies:
            response = await super().serve(request)
            if response.status == 200:
                self._replies[asked] = _reply(*asked)
            return response
        media, pieces = self._replies[asked]
        if media == "application/json":
            return web.Response(body=pieces[0], content_type=media)
        streamed = web.StreamResponse(headers={"Content-Type": media})
        await streamed.prepare(request)
        for piece in pieces:
            await streamed.write(piece)
        return streamed


def _reply(path: str, raw: bytes) -> tuple[str, list[bytes]]:
    """Return the type and the pieces of the body that the vendor replies with."""
    speak, body = dialect_of(path), json.loads(raw)
    assert speak is not None, path
    if speak.streams(path, body):
        return speak.media, list(speak.pieces(Say(), body))
    return "application/json", [json.dumps(speak.whole(Say(), body)[1]).encode()]


async def _serve() -> None:
    async with served(Replaying(), 2**26) as running:
        print(running.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
