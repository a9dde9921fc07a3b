"""`anthropic_api`: Anthropic's Messages."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from fairtrial.core.answer import REFUSED, TOOL_CALLS, Answer, Failure, Request
from fairtrial.providers import transport
from fairtrial.providers.params import ANTHROPIC_VERSION, REPLY_TOOL, anthropic_params
from fairtrial.providers.replies import (
    UNREADABLE,
    anthropic_usage,
    calls_trace,
    finish_of,
    loose,
    name_of,
    refusal_text,
)
from fairtrial.providers.streams import sse_data

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_STATUS = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
}


class _Block(msgspec.Struct):
    type: Any = ""
    text: str | None = None
    name: Any = None  # of a tool
    input: Any = None
    partial_json: Any = None
    thinking: Any = None
    stop_reason: Any = None  # in a message_delta, where `delta` has another shape
    stop_details: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct):
    type: Any = ""
    error: Any = None
    content: list[_Block] | None = None
    model: msgspec.Raw = msgspec.Raw()
    stop_reason: Any = None
    stop_details: msgspec.Raw = msgspec.Raw()
    usage: msgspec.Raw = msgspec.Raw()


class _Event(msgspec.Struct):
    type: Any = ""
    index: Any = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Block | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: Any = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class AnthropicApi(transport.HttpTarget):
    """One model behind the Messages API."""

    takes_images: ClassVar[bool] = True

    def url(self) -> str:
        return transport.endpoint(self.spec.base_url, "/v1/messages")

    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.spec.api_key, "anthropic-version": ANTHROPIC_VERSION}

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        return _read_whole(body, started)

    async def read_stream(self, response: ClientResponse, started: float) -> Answer | Failure:
        return await _read_stream(response, started)

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [{"role": "user", "content": _content(request)}],
            **anthropic_params(self.spec, request),
        }
        if request.system:
            body["system"] = request.system
        if request.stream:
            body["stream"] = True
        return body


def _content(request: Request) -> str | list[dict[str, Any]]:
    """The question, with its pictures in front of it."""
    if not request.images:
        return request.input
    pictures = [
        {"type": "base64", "media_type": image.media, "data": b64encode(image.body).decode()}
        for image in request.images
    ]
    blocks: list[dict[str, Any]] = [{"type": "image", "source": picture} for picture in pictures]
    return [*blocks, {"type": "text", "text": request.input}]


def _read_whole(body: bytes, started: float) -> Answer | Failure:
    latency = (time.perf_counter() - started) * 1000
    try:
        message = _decode_message(body)
    except UNREADABLE as error:
        return transport.unreadable(body, "message", error)
    if message.error is not None:
        return _failure_in_reply(message.error)
    if message.type != "message":
        return Failure(kind="malformed", message="HTTP 200 without a message", retryable=True)
    blocks = message.content or []
    return _answer(
        text=_text_of(blocks),
        calls=[(block.name, block.input) for block in blocks if block.type == "tool_use" and block.name != REPLY_TOOL],
        details=message.stop_details,
        finish_reason=finish_of(message.stop_reason),
        usage=anthropic_usage(loose(message.usage)),
        model=name_of(loose(message.model)),
        latency_ms=latency,
        reasoning="".join(name_of(block.thinking) or "" for block in blocks) or None,
    )


def _text_of(blocks: list[_Block]) -> str:
    """The text, or the JSON where a schema was asked for."""
    for block in blocks:
        if block.type == "tool_use" and block.name == REPLY_TOOL:
            return msgspec.json.encode(block.input).decode()
    return "".join(block.text or "" for block in blocks if block.type == "text")


def _answer(*, text: str, calls: list[tuple[Any, Any]], details: msgspec.Raw, **rest: Any) -> Answer:
    """An answer, of its own kind where it is a refusal or nothing but calls of tools."""
    if rest["finish_reason"] == REFUSED:
        text = text or refusal_text(loose(details))
    elif calls:
        rest["trace"] = calls_trace(calls)
        rest["finish_reason"] = rest["finish_reason"] if text.strip() else TOOL_CALLS
    return Answer(text=text, **rest)


class _Streamed:
    """A message that comes in events."""

    def __init__(self) -> None:
        self.collected = transport.Collected()
        self.usage: dict[str, Any] = {}
        self.finish: str | None = None
        self.details = self.model = msgspec.Raw()
        self.done = False
        self._calls: dict[Any, tuple[Any, str]] = {}

    def take(self, event: _Event) -> None:
        """One more event."""
        if event.message is not None:
            self.model = event.message.model
            self._count(event.message.usage)
        self._count(event.usage)
        self.done = self.done or event.type == "message_stop"
        if event.content_block is not None and event.content_block.type == "tool_use":
            self._calls[str(event.index)] = (event.content_block.name, "")
        if (delta := event.delta) is not None:
            self._take_delta(delta, str(event.index))

    def _take_delta(self, delta: _Block, place: str) -> None:
        self.finish = finish_of(delta.stop_reason) or self.finish
        self.details = delta.stop_details or self.details
        if delta.text:
            self.collected.say(delta.text)
        elif thought := name_of(delta.thinking):
            self.collected.think(thought)
        elif (arguments := name_of(delta.partial_json)) and place in self._calls:
            name, so_far = self._calls[place]
            self._calls[place] = (name, so_far + arguments)

    def _count(self, usage: msgspec.Raw) -> None:
        """Counts come in pieces; what is said later holds."""
        if usage and isinstance(found := loose(usage), dict):
            self.usage |= {name: value for name, value in found.items() if value is not None}

    @property
    def calls(self) -> list[tuple[Any, Any]]:
        """The tools that the model asked for."""
        return list(self._calls.values())


async def _read_stream(response: ClientResponse, started: float) -> Answer | Failure:
    streamed = _Streamed()
    async for data in sse_data(response):
        try:
            event = _decode_event(data)
        except UNREADABLE as error:
            return transport.unreadable_event(error)
        if event.type == "error":  # what was said until then is counted
            return transport.in_the_middle(_failure_in_reply(event.error), anthropic_usage(streamed.usage))
        streamed.take(event)
    if not streamed.done:
        return Failure(kind="stream", message="the stream ended before the answer did", retryable=True)
    return _answer(
        text=streamed.collected.text,
        calls=streamed.calls,
        details=streamed.details,
        finish_reason=streamed.finish,
        usage=anthropic_usage(streamed.usage),
        model=name_of(loose(streamed.model)),
        latency_ms=(time.perf_counter() - started) * 1000,
        first_token_ms=streamed.collected.first_token_ms(started),
        reasoning=streamed.collected.reasoning,
    )


def _failure_in_reply(error: Any) -> Failure:
    """An error that came with status 200, as in the middle of a stream."""
    kind = error.get("type") if isinstance(error, dict) else ""
    result = transport.error_of_status(_STATUS.get(str(kind), 500), msgspec.json.encode({"error": error}))
    assert isinstance(result, Failure), "Messages has no filter of its own"
    return result
