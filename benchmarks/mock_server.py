"""A model server for measuring and testing: OpenAI's two protocols and Anthropic's, chosen latency, chosen faults.

It is a raw asyncio protocol, so that it costs a fraction of what it measures, and it counts every call by prompt,
so that a test can tell whether a call was made twice. `python -m benchmarks.mock_server --help`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.strict import Refusal, refusal

_SPEAK = {"messages": "messages", "responses": "response"}  # who replies, by the end of a path
FAULTS = ("429", "500", "reset", "empty", "hang", "blank", "cut")


@dataclass
class Behaviour:
    latency: float = 0.0
    jitter: float = 0.0  # the share by which single latencies are shorter or longer
    faults: dict[str, float] = field(default_factory=dict)
    retry_after: float | None = None
    answer: str = "The answer is 42."
    answers: tuple[str, ...] = ()  # given in turn, in place of `answer`
    key: str | None = None
    models: tuple[str, ...] = ()
    seed: int = 0
    first_only: bool = False  # faults hit only the first call of a prompt
    refuse_stream: bool = False
    strict: bool = True  # what the real APIs refuse is refused
    alike: dict[str, str] = field(default_factory=dict)  # models that nobody knows: each refuses what another refuses


class State:
    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.calls: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.delivered: Counter[str] = Counter()  # answers whose client was still there
        self.first_call: float | None = None  # on the clock that all processes of a machine share
        self.last_answer: float | None = None
        self.faults: Counter[str] = Counter()
        self.most_open = self.open = 0
        self.luck, self.delays = random.Random(behaviour.seed), random.Random(behaviour.seed)
        self.bodies: list[dict[str, Any]] = []
        self.refused: list[Refusal] = []
        self._hold_after: int | None = None
        self._held: list[Callable[[], None]] = []

    def hold(self, after: int) -> None:
        """Answer so many calls; those after them wait for `release`, so that a test decides how far a run gets."""
        self._hold_after = after

    def release(self) -> None:
        """Answer everybody who waits, and everybody from now on."""
        held, self._held, self._hold_after = self._held, [], None
        for answer in held:
            answer()

    def when_allowed(self, answer: Callable[[], None]) -> None:
        """Answer now, or when `release` is called."""
        if self._hold_after is None or self.calls.total() <= self._hold_after:
            answer()
        else:
            self._held.append(answer)

    def count_call(self, prompt: str) -> None:
        self.calls[prompt] += 1
        if self.first_call is None:
            self.first_call = time.monotonic()

    def count_answer(self, prompt: str, delivered: bool) -> None:
        self.answered[prompt] += 1
        self.delivered[prompt] += delivered
        self.last_answer = time.monotonic()

    def fault(self, prompt: str) -> str | None:
        if self.behaviour.first_only and self.calls[prompt] > 1:
            return None
        roll = self.luck.random()
        for name, share in self.behaviour.faults.items():
            roll -= share
            if roll < 0:
                self.faults[name] += 1
                return name
        return None


class Connection(asyncio.Protocol):
    def __init__(self, state: State) -> None:
        self.state, self.buffer = state, b""
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            lowered = head.lower()
            length = 0
            if (at := lowered.find(b"content-length:")) >= 0:
                length = int(lowered[at + 15 :].split(b"\r\n", 1)[0])
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self.request(head, body)

    def request(self, head: bytes, body: bytes) -> None:
        method, path, _ = head.split(b"\r\n", 1)[0].split(b" ", 2)
        if method == b"GET":
            self.get(path.decode())
            return
        self.post(path.decode(), head, json.loads(body))

    def get(self, path: str) -> None:
        state = self.state
        if path == "/stats":
            stats = {
                "calls": sum(state.calls.values()),
                "prompts": len(state.calls),
                "most_calls": max(state.calls.values(), default=0),
                "answered": sum(state.answered.values()),
                "most_answered": max(state.answered.values(), default=0),
                "delivered": state.delivered.total(),
                "delivered_prompts": len(state.delivered),
                "first_call": state.first_call,
                "last_answer": state.last_answer,
                "faults": state.faults,
                "most_open": state.most_open,
            }
            self.reply(200, stats)
        elif path == "/answered":
            self.reply(200, state.answered)
        else:
            self.reply(404, {"error": {"message": "nothing here"}})

    def post(self, path: str, head: bytes, body: dict[str, Any]) -> None:
        state, how = self.state, self.state.behaviour
        prompt = (body.get("messages") or body["input"])[-1]["content"]
        if isinstance(prompt, list):  # with pictures
            prompt = next(part["text"] for part in prompt if part["type"] in ("text", "input_text"))
        state.bodies = [*state.bodies[-20:], body]
        if how.key and how.key.encode() not in head:
            self.reply(401, {"error": {"message": f"Incorrect API key: {_key(head)}"}})
            return
        if how.models and body.get("model") not in how.models:
            self.reply(404, {"error": {"message": f"The model `{body.get('model')}` does not exist"}})
            return
        state.count_call(prompt)
        refused = refusal(path, _headers(head), body, alike=how.alike) if how.strict else None
        if refused:
            state.refused.append(refused)
            self.reply(refused.status, refused.body)
            return
        fault = state.fault(prompt)
        state.open += 1
        state.most_open = max(state.most_open, state.open)
        stream = bool(body.get("stream"))
        if stream and how.refuse_stream:
            fault = "cut"
        if fault == "hang":
            return
        state.when_allowed(lambda: self.answer(path, prompt, stream, fault))

    def answer(self, path: str, prompt: str, stream: bool, fault: str | None) -> None:
        how = self.state.behaviour
        latency = how.latency * (1 + how.jitter * self.state.delays.uniform(-1, 1))
        speak = getattr(self, _SPEAK.get(path.partition("?")[0].rpartition("/")[2], "completion"))
        if stream and fault not in ("429", "500", "blank"):
            self.loop.call_later(latency / 2, self.start_stream, fault)
            self.loop.call_later(latency, speak, prompt, True, fault)
        else:
            self.loop.call_later(latency, speak, prompt, False, fault)

    def start_stream(self, fault: str | None) -> None:
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def completion(self, prompt: str, stream: bool, fault: str | None) -> None:
        self.state.open -= 1
        if self.misbehave(stream, fault):
            return
        text = "" if fault == "empty" else self.text(prompt)
        if text:
            self.state.count_answer(prompt, delivered=not self.transport.is_closing())
        usage = {"prompt_tokens": len(prompt) // 4 + 1, "completion_tokens": len(text) // 4 + 1}
        usage["total_tokens"] = sum(usage.values())
        if not stream:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self.reply(200, {"id": "c", "model": "mock", "choices": [choice], "usage": usage})
            return
        half = len(text) // 2
        events: list[Any] = [
            {"model": "mock", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
            *(
                {"model": "mock", "choices": [{"index": 0, "delta": {"content": p}}]}
                for p in (text[:half], text[half:])
            ),
            {"model": "mock", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"model": "mock", "choices": [], "usage": usage},
        ]
        self.end_stream([json.dumps(event) for event in events] + ["[DONE]"])

    def messages(self, prompt: str, stream: bool, fault: str | None) -> None:
        self.state.open -= 1
        if self.misbehave(stream, fault):
            return
        text = "" if fault == "empty" else self.text(prompt)
        if text:
            self.state.count_answer(prompt, delivered=not self.transport.is_closing())
        prompt_tokens, completion_tokens = len(prompt) // 4 + 1, len(text) // 4 + 1
        if not stream:
            message = {
                "type": "message",
                "model": "mock",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": prompt_tokens, "output_tokens": completion_tokens},
            }
            self.reply(200, message)
            return
        half = len(text) // 2
        start = {"model": "mock", "usage": {"input_tokens": prompt_tokens, "output_tokens": 1}}
        events: list[Any] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
                for p in (text[:half], text[half:])
            ),
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": completion_tokens},
            },
            {"type": "message_stop"},
        ]
        self.end_stream([json.dumps(event) for event in events])

    def response(self, prompt: str, stream: bool, fault: str | None) -> None:
        self.state.open -= 1
        if self.misbehave(stream, fault):
            return
        text = "" if fault == "empty" else self.text(prompt)
        if text:
            self.state.count_answer(prompt, delivered=not self.transport.is_closing())
        usage = {"input_tokens": len(prompt) // 4 + 1, "output_tokens": len(text) // 4 + 1}
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        done = {"id": "r", "model": "mock", "status": "completed", "output": [message], "usage": usage}
        if not stream:
            self.reply(200, done)
            return
        half = len(text) // 2
        events: list[Any] = [
            {"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
            *({"type": "response.output_text.delta", "item_id": "m", "delta": p} for p in (text[:half], text[half:])),
            {"type": "response.completed", "response": done},
        ]
        self.end_stream([json.dumps(event) for event in events])

    def text(self, prompt: str) -> str:
        given = self.state.behaviour.answers
        if given:
            return given[sum(self.state.answered.values()) % len(given)]
        return self.state.behaviour.answer.replace("{prompt}", prompt)

    def misbehave(self, stream: bool, fault: str | None) -> bool:
        if fault == "429":
            after = self.state.behaviour.retry_after
            extra = f"Retry-After: {after:g}\r\n" if after is not None else ""
            self.reply(429, {"error": {"message": "slow down"}}, extra)
        elif fault == "500":
            self.reply(500, {"error": {"message": "broken"}})
        elif fault == "blank":
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")
        elif fault in ("reset", "cut"):
            if stream:
                self.raw(_chunk(b'data: {"choices":[{"index":0,"delta":{"content":"Half an ans'))
                if fault == "cut":
                    self.raw(b"0\r\n\r\n")
                    return True
            self.transport.abort()
        else:
            return False
        return True

    def raw(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def end_stream(self, events: list[str]) -> None:
        body = b"".join(_chunk(f"data: {event}\n\n".encode()) for event in events)
        self.raw(body + b"0\r\n\r\n")

    def reply(self, status: int, value: Any, extra: str = "") -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        self.raw(head.encode() + body)


def _headers(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in lines}


def _key(head: bytes) -> str:
    headers = _headers(head)
    return headers.get("authorization") or headers.get("x-api-key") or "none"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def start(behaviour: Behaviour, port: int = 0) -> tuple[asyncio.Server, State, str]:
    """A running server, its state, and its address."""
    state = State(behaviour)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(state), "127.0.0.1", port, backlog=2048)
    return server, state, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _serve(behaviour: Behaviour, port: int) -> None:
    server, _, address = await start(behaviour, port)
    print(address, flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--jitter", type=float, default=0.0, help="share by which single latencies differ")
    parser.add_argument("--answer", default=Behaviour.answer)
    parser.add_argument("--retry-after", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strict", action="store_true", help="refuse what the real APIs refuse")
    parser.add_argument("--fault", action="append", default=[], help=f"NAME=SHARE, of {', '.join(FAULTS)}")
    options = parser.parse_args()
    faults = {name: float(share) for name, share in (item.split("=") for item in options.fault)}
    behaviour = Behaviour(
        latency=options.latency,
        jitter=options.jitter,
        answer=options.answer,
        faults=faults,
        retry_after=options.retry_after,
        seed=options.seed,
        strict=options.strict,
    )
    asyncio.run(_serve(behaviour, options.port))


if __name__ == "__main__":
    main()
