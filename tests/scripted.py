"""A model that follows a script: a Messages API and a chat completions API on loopback, with tool calls.

A script is a function from the conversation to what is said next: a text, or tool calls.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from benchmarks.strict import refusal
from tests.servers.vendors import Messages


class Say(NamedTuple):
    """What the model says next: a text, and calls of tools as (name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


class Turn(NamedTuple):
    """What the model has before it."""

    system: str
    question: str
    tools: list[str]
    results: list[str]  # of tools, in the order of the calls


Script = Callable[[Turn], Say]


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
        self.url = ""

    async def _heard(self, request: web.Request) -> tuple[dict[str, Any], web.Response | None]:
        """A request's body, and what a real API would answer if it refuses it."""
        body = await request.json()
        self.bodies.append(body)
        if "model" in request.match_info:  # Claude on Vertex
            return {**body, "model": request.match_info["model"]}, await self._refused_on_vertex(request, body)
        headers = {name.lower(): value for name, value in request.headers.items()}
        refused = refusal(request.path, headers, body) if self.strict else None
        return body, web.json_response(refused[1], status=refused[0]) if refused else None

    async def _refused_on_vertex(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        refused = Messages().refusal(request.path, {}, body)
        return web.json_response(refused[1], status=refused[0]) if refused else None

    async def messages(self, request: web.Request) -> web.StreamResponse:
        body, refused = await self._heard(request)
        if refused:
            return refused
        said = self.script(_turn_of_messages(body))
        blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
        for number, (name, arguments) in enumerate(said.calls):
            call = f"toolu_{len(self.bodies)}_{number}"
            blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
        reason = "tool_use" if said.calls else "end_turn"
        usage = {"input_tokens": 100, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0}
        message = {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 1},
        }
        if not body.get("stream"):
            whole = {**message, "content": blocks, "stop_reason": reason, "usage": {**usage, "output_tokens": 7}}
            return web.json_response(whole)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(message, blocks, reason):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    async def completions(self, request: web.Request) -> web.Response:
        body, refused = await self._heard(request)
        if refused:
            return refused
        said = self.script(_turn_of_chat(body))
        calls = [
            {
                "id": f"call_{len(self.bodies)}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(said.calls)
        ]
        message = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        return web.json_response({"model": body["model"], "choices": choices, "usage": usage})


def _events(message: dict[str, Any], blocks: list[dict[str, Any]], reason: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}
    return [*events, end, {"type": "message_stop"}]


def _turn_of_messages(body: dict[str, Any]) -> Turn:
    system = body.get("system") or ""
    if isinstance(system, list):
        system = "\n".join(block["text"] for block in system)
    results, questions = [], []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks if message["role"] == "user" else ():
            if block["type"] == "tool_result":
                results.append(_plain(block.get("content")))
            elif block["type"] == "text":
                questions.append(block["text"])
    return Turn(system, "\n".join(questions), [tool["name"] for tool in body.get("tools") or ()], results)


def _turn_of_chat(body: dict[str, Any]) -> Turn:
    messages = body["messages"]
    said = {role: [_plain(m["content"]) for m in messages if m["role"] == role] for role in ("system", "user", "tool")}
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    return Turn("\n".join(said["system"]), "\n".join(said["user"]), tools, said["tool"])


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


@asynccontextmanager
async def scripted_model(script: Script, *, strict: bool = True) -> AsyncIterator[Scripted]:
    """Serve a script until the block ends."""
    model = Scripted(script, strict=strict)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/messages", model.messages)
    app.router.add_post("/v1/projects/p/locations/global/publishers/anthropic/models/{model}:{call}", model.messages)
    app.router.add_post("/v1/chat/completions", model.completions)
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
