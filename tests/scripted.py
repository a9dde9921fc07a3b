"""A model that follows a script, on loopback, with the APIs that agents use and with calls of tools.

A script is a function from the conversation to what is said next: a text, or tool calls. What goes over the wire is
written in `examples/agents/scripted_model.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from benchmarks.strict import refusal
from examples.agents.scripted_model import Say, Turn, read_turn, stream, whole
from tests.servers.vendors import Messages

__all__ = ["Say", "Script", "Scripted", "Turn", "look_up", "scripted_model"]

Script = Callable[[Turn], Say]
_STRICT = ("/messages", "/chat/completions")  # the APIs of which we know what they refuse


def look_up(turn: Turn) -> Say:
    """A model that looks things up if it can, and says what it found."""
    tool = next((name for name in turn.tools if name.endswith("lookup")), None)
    if tool and not turn.results:
        return Say("Let me look.", ((tool, {"topic": "code"}),))
    return Say(f"It is {turn.results[-1] if turn.results else 'unknown to me'}")


class Scripted:
    """The server's memory: every request that came. What the real APIs refuse is refused, unless it is not `strict`."""

    def __init__(self, script: Script, *, strict: bool = True) -> None:
        self.script, self.strict = script, strict
        self.bodies: list[dict[str, Any]] = []
        self.turns: list[Turn] = []
        self.url = ""

    async def reply(self, request: web.Request) -> web.Response:
        """Reply as the script says, as a stream if one is asked for."""
        body = await request.json()
        self.bodies.append(body)
        path = request.path
        if "model" in request.match_info:  # Claude on Vertex
            refused = Messages().refusal(path, {}, body)
            path, body = "/v1/messages", {**body, "model": request.match_info["model"]}
        else:
            headers = {name.lower(): value for name, value in request.headers.items()}
            refused = refusal(path, headers, body) if self.strict and path.endswith(_STRICT) else None
        if refused:
            return web.json_response(refused[1], status=refused[0])
        self.turns.append(read_turn(path, body))
        said = self.script(self.turns[-1])
        number = len(self.bodies)
        if body.get("stream") or not path.endswith(_STRICT):
            content = stream(path, body, said, number)
            return web.Response(body=content, headers={"Content-Type": "text/event-stream"})
        return web.json_response(whole(path, body, said, number))


@asynccontextmanager
async def scripted_model(script: Script, *, strict: bool = True) -> AsyncIterator[Scripted]:
    """Serve a script until the block ends."""
    model = Scripted(script, strict=strict)
    app = web.Application(client_max_size=2**26)
    for path in (
        "/v1/messages",
        "/v1/projects/p/locations/global/publishers/anthropic/models/{model}:{call}",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1beta/models/{gemini}:streamGenerateContent",
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
