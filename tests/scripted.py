"""A model that follows a script, on loopback, with the APIs that agents use and with calls of tools.

A script is a function from the conversation to what is said next: a text, or tool calls. What goes over the wire is
written in `examples/agents/scripted_model.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from benchmarks.strict import Refusal, refusal
from examples.agents.scripted_model import Say, Turn, read_turn, stream, whole
from tests.servers.vendors import deployed

__all__ = ["Say", "Script", "Scripted", "Turn", "look_up", "scripted_model"]

Script = Callable[[Turn], Say]


def look_up(turn: Turn) -> Say:
    """A model that looks things up if it can, and says what it found."""
    tool = next((name for name in turn.tools if name.endswith("lookup")), None)
    if tool and not turn.results:
        return Say("Let me look.", ((tool, {"topic": "code"}),))
    return Say(f"It is {turn.results[-1] if turn.results else 'unknown to me'}")


class Scripted:
    """The server's memory: every request that came. What the real APIs refuse is refused, unless it is not `strict`.

    `alike` has names of models that nobody knows, each with a model that refuses the same.
    """

    def __init__(self, script: Script, *, strict: bool = True, alike: dict[str, str] | None = None) -> None:
        self.script, self.strict, self.alike = script, strict, alike or {}
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.refused: list[Refusal] = []
        self.turns: list[Turn] = []
        self.url = ""

    async def reply(self, request: web.Request) -> web.Response:
        """Reply as the script says, as a stream if one is asked for."""
        body = await request.json()
        self.bodies.append(body)
        self.paths.append(request.path_qs)
        if self.strict:
            headers = {name.lower(): value for name, value in request.headers.items()}
            alike = deployed(self.alike, str(body.get("model")))
            refused = refusal(request.path_qs, headers, body, alike=alike)
            if refused:
                self.refused.append(refused)
                return web.json_response(refused.body, status=refused.status)
        path = request.path
        if "model" in request.match_info:  # Claude on Vertex
            path, body = "/v1/messages", {**body, "model": request.match_info["model"]}
        self.turns.append(read_turn(path, body))
        said = self.script(self.turns[-1])
        number = len(self.bodies)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            content = stream(path, body, said, number)
            return web.Response(body=content, headers={"Content-Type": "text/event-stream"})
        return web.json_response(whole(path, body, said, number))


@asynccontextmanager
async def scripted_model(
    script: Script, *, strict: bool = True, alike: dict[str, str] | None = None
) -> AsyncIterator[Scripted]:
    """Serve a script until the block ends: at the vendors' own paths, on Azure, and below any path, as gateways do."""
    model = Scripted(script, strict=strict, alike=alike)
    app = web.Application(client_max_size=2**26)
    for path in (
        "/v1/projects/p/locations/global/publishers/anthropic/models/{model}:{call}",
        "/v1beta/models/{gemini}:{way}",
        "/v1/models/{gemini}:{way}",
        "/{before:.*}/messages",
        "/{before:.*}/chat/completions",
        "/{before:.*}/responses",
    ):
        app.router.add_post(path, model.reply)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    model.url = f"http://{host}:{port}"
    try:
        yield model
    finally:
        await runner.cleanup()
