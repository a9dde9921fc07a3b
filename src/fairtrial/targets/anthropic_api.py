"""`anthropic_api`: Anthropic's Messages."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from fairtrial import wire
from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.hearing import listening
from fairtrial.params import anthropic_params

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_VERSION = "2023-06-01"
_REPLY_TOOL = "reply"
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


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None

    def merged(self, later: _Usage | None) -> _Usage:
        """Counts come in pieces; what is said later holds."""
        if later is None:
            return self
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(later), strict=True)
        return _Usage(*(new if new is not None else old for old, new in pairs))

    def as_usage(self) -> Usage:
        read, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return Usage(
            prompt=(self.input_tokens or 0) + read + written,
            completion=self.output_tokens or 0,
            cache_read=read,
            cache_write=written,
        )


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    input: Any = None  # of a tool
    thinking: str | None = None
    stop_reason: str | None = None  # in a message_delta, where `delta` has another shape


class _Message(msgspec.Struct):
    type: str = ""
    error: Any = None
    content: list[_Block] = []
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    type: str = ""
    message: _Message | None = None
    delta: _Block | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class AnthropicApi(wire.HttpTarget):
    """One model behind the Messages API."""

    takes_images: ClassVar[bool] = True

    def url(self) -> str:
        return f"{self.spec.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.spec.api_key, "anthropic-version": _VERSION}

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        return _read_whole(body, started)

    async def read_stream(self, response: ClientResponse, started: float) -> Answer | Failure:
        return await _read_stream(response, started)

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [{"role": "user", "content": _content(request)}],
            **anthropic_params(request),
        }
        if request.system:
            body["system"] = request.system
        if request.schema is not None:  # a tool that must be used is how Messages takes a schema
            body["tools"] = [{"name": _REPLY_TOOL, "description": "The reply.", "input_schema": request.schema}]
            body["tool_choice"] = {"type": "tool", "name": _REPLY_TOOL}
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
    except msgspec.MsgspecError as error:
        what = "an empty body" if not body.strip() else f"no message ({error})"
        return Failure(kind="malformed", message=f"HTTP 200 with {what}", retryable=True)
    if message.error is not None:
        return _failure_in_reply(message.error)
    if message.type != "message":
        return Failure(kind="malformed", message="HTTP 200 without a message", retryable=True)
    return Answer(
        text=_text_of(message.content),
        finish_reason=_finish(message.stop_reason),
        usage=message.usage.as_usage() if message.usage else None,
        model=message.model,
        latency_ms=latency,
        reasoning="".join(block.thinking or "" for block in message.content) or None,
    )


def _text_of(blocks: list[_Block]) -> str:
    """The text, or the JSON where a schema was asked for."""
    for block in blocks:
        if block.type == "tool_use":
            return msgspec.json.encode(block.input).decode()
    return "".join(block.text or "" for block in blocks if block.type == "text")


async def _read_stream(response: ClientResponse, started: float) -> Answer | Failure:
    texts: list[str] = []
    thoughts: list[str] = []
    usage, finish, first, model, done = _Usage(), None, None, None, False
    ear = listening.get()
    async for data in wire.sse_data(response):
        try:
            event = _decode_event(data)
        except msgspec.MsgspecError as error:
            return Failure(kind="stream", message=f"unreadable event in the stream: {error}", retryable=True)
        if event.type == "error":
            return _failure_in_reply(event.error)
        if event.message is not None:
            model, usage = event.message.model, usage.merged(event.message.usage)
        usage = usage.merged(event.usage)
        done = done or event.type == "message_stop"
        if event.delta is not None:
            finish = event.delta.stop_reason or finish
            if event.delta.text:
                first = first or time.perf_counter()
                texts.append(event.delta.text)
                ear.piece(event.delta.text)
            elif event.delta.thinking:
                thoughts.append(event.delta.thinking)
    if not done:
        return Failure(kind="stream", message="the stream ended before the answer did", retryable=True)
    return Answer(
        text="".join(texts),
        finish_reason=_finish(finish),
        usage=usage.as_usage(),
        model=model,
        latency_ms=(time.perf_counter() - started) * 1000,
        first_token_ms=(first - started) * 1000 if first else None,
        reasoning="".join(thoughts) or None,
    )


def _finish(reason: str | None) -> str | None:
    """Anthropic's reasons in the words that the rest of the field uses."""
    return {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}.get(reason or "", reason)


def _failure_in_reply(error: Any) -> Failure:
    kind = error.get("type") if isinstance(error, dict) else ""
    return wire.failure_of_status(_STATUS.get(str(kind), 500), msgspec.json.encode({"error": error}))
