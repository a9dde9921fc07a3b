"""A model server that keeps its own books, and answers as servers do on a bad day: no usage, impossible usage, cut bodies.

Whatever it says, `/ledger` tells what it would write on the bill: every request that it worked on, answered or not.
`python -m benchmarks.billing --help`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from typing import Any

from aiohttp import web

PRICE = 0.001  # USD per token, in and out
FAULTS = (
    *("no usage", "negative usage", "absurd usage", "odd usage", "zero usage", "no answer", "negative cost", "no cost"),
    *("201", "unreadable 202"),
    *("cut body", "bad utf-8", "reset", "slow", "500", "429", "cut stream", "error event", "empty"),
)


class Books:
    """What was worked on, and what it costs."""

    def __init__(self, share: float, seed: int, answer: str) -> None:
        self.share, self.answer = share, answer
        self.luck = random.Random(seed)
        self.usd = 0.0
        self.calls = 0
        self.faults: dict[str, int] = {}

    def fault(self) -> str | None:
        if self.luck.random() >= self.share:
            return None
        name = self.luck.choice(FAULTS)
        self.faults[name] = self.faults.get(name, 0) + 1
        return name

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        fault = self.fault()
        if fault in ("500", "429"):
            return web.json_response({"error": {"message": "not now"}}, status=int(fault))
        prompt = sum(len(str(message["content"])) for message in body["messages"])
        most = body.get("max_completion_tokens") or body["max_tokens"]
        completion = 0 if fault == "empty" else self.luck.randint(max(1, most // 2), most)
        self.usd += PRICE * (prompt + completion)
        self.calls += 1
        await asyncio.sleep(self.luck.uniform(0.005, 0.03))
        if fault == "slow":
            await asyncio.sleep(30)
        usage: dict[str, Any] | None = {"prompt_tokens": prompt, "completion_tokens": completion}
        if fault in _USAGES:
            usage = _USAGES[fault]
        elif fault in ("negative cost", "no cost"):
            usage = {**(usage or {}), "cost": -5.0 if fault == "negative cost" else 0}
        text = "" if fault == "empty" else self.answer
        if body.get("stream"):
            return await self.stream(request, text, usage, fault)
        return await self.whole(request, text, usage, fault)

    async def whole(
        self, request: web.Request, text: str, usage: dict[str, Any] | None, fault: str | None
    ) -> web.StreamResponse:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        reply = json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()
        if fault == "bad utf-8":
            reply = reply.replace(b'"content": "', b'"content": "\xff\xfe')
        if fault in ("reset", "cut body", "cut stream", "error event"):
            return await _break_off(request, reply if fault != "reset" else b"")
        if fault == "unreadable 202":
            return web.json_response({"accepted": True}, status=202)
        return web.Response(body=reply, content_type="application/json", status=201 if fault == "201" else 200)

    async def stream(
        self, request: web.Request, text: str, usage: dict[str, Any] | None, fault: str | None
    ) -> web.StreamResponse:
        if fault == "reset":
            return await _break_off(request, b"")
        if fault == "unreadable 202":
            return web.json_response({"accepted": True}, status=202)
        status = 201 if fault == "201" else 200
        response = web.StreamResponse(status=status, headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        delta = {"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}
        await response.write(f"data: {json.dumps(delta)}\n\n".encode())
        if fault == "bad utf-8":
            await response.write(b'data: {"choices": [{"delta": {"content": "\xff\xfe"}}]}\n\n')
        if fault == "error event":
            await response.write(b'data: {"error": {"message": "overloaded", "code": 503}}\n\n')
            return response
        if fault in ("cut stream", "cut body"):
            assert request.transport is not None
            request.transport.abort()
            return response
        for event in (
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": usage},
        ):
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def ledger(self, _: web.Request) -> web.Response:
        return web.json_response({"usd": self.usd, "calls": self.calls, "faults": self.faults})


_USAGES: dict[str | None, dict[str, Any] | None] = {
    "no usage": None,
    "negative usage": {"prompt_tokens": -1_000_000, "completion_tokens": -1},
    "absurd usage": {"prompt_tokens": 2**63, "completion_tokens": 2**64},
    "odd usage": {"prompt_tokens": "many", "completion_tokens": None},
    "zero usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "no answer": {"prompt_tokens": 9, "completion_tokens": 0},
}


async def _break_off(request: web.Request, sent: bytes) -> web.StreamResponse:
    """Promise more than is sent, then hang up."""
    assert request.transport is not None
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    if sent:
        request.transport.write(head + sent)  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        request.transport.close()
    else:
        request.transport.abort()
    return web.Response()


async def start(books: Books, port: int = 0) -> tuple[web.AppRunner, str]:
    """A running server and its address."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", books.completions)
    app.router.add_get("/ledger", books.ledger)
    # Whoever hangs up is not the end of a call, and a slow call is not waited for in the end.
    runner = web.AppRunner(app, handler_cancellation=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def _serve(books: Books) -> None:
    _, address = await start(books)
    print(address, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.3, help="of calls that go wrong")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answer", default="The answer is 42.")
    options = parser.parse_args()
    asyncio.run(_serve(Books(options.share, options.seed, options.answer)))


if __name__ == "__main__":
    main()
