"""`anthropic_api`: Anthropic's Messages API."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from fairtrial.core.answer import REFUSED, TOOL_CALLS, Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.core.providers import Provider
from fairtrial.providers import transport
from fairtrial.providers.conversation import BAD_TURN, Call, Conversation, Result, Turn
from fairtrial.providers.params import PENALTIES, Api, model_of, supported_params, thinking_of
from fairtrial.providers.replies import (
    UNREADABLE,
    anthropic_usage,
    calls_trace,
    decode_or_none,
    finish_of,
    refusal_text,
    text_or_none,
)
from fairtrial.providers.streams import sse_data

if TYPE_CHECKING:
    from aiohttp import ClientResponse

# Sent with every call to Messages. Do not raise it without care: from 2026-10-21 on the API rejects temperature, top_p
# and top_k on every model, even at their defaults, while 2023-06-01 still accepts them on models that support them.
ANTHROPIC_VERSION = "2023-06-01"

REPLY_TOOL = "reply"  # the tool through which older Claude models return JSON

_PATH = "/v1/messages"
_NAMES = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop": "stop_sequences"}
_LONGEST = 2048  # tokens: the API requires a maximum length for the answer
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
    stop_reason: Any = None  # in a message_delta, whose `delta` has a different structure
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


class _Turn(msgspec.Struct):
    content: Any = None
    stop_reason: Any = None
    stop_details: msgspec.Raw = msgspec.Raw()
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()


_decode_turn = msgspec.json.Decoder(_Turn).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def messages_params(spec: TargetSpec, request: Request) -> dict[str, Any]:
    """Return the parameters of a Messages request, with `extra` unchanged and the schema if there is one."""
    params = supported_params(spec, request.params)
    extra = params.pop("extra", {})
    body: dict[str, Any] = {_NAMES[name]: value for name, value in params.items() if name in _NAMES}
    body |= extra
    if request.schema is None:
        return body
    if model_of(spec.model).json_format:
        shape = {"type": "json_schema", "schema": without_ranges(request.schema)}
        return {**body, "output_config": {**body.get("output_config", {}), "format": shape}}
    tool = {"name": REPLY_TOOL, "description": "The reply.", "input_schema": request.schema}
    # A tool cannot be forced while thinking is on.
    choice = {"type": "auto"} if thinking_of(extra) else {"type": "tool", "name": REPLY_TOOL}
    return {**body, "tools": [tool], "tool_choice": choice}


def without_ranges(schema: Any) -> Any:
    """Return a schema without keywords that structured outputs reject; ranges are checked when reading the reply."""
    if isinstance(schema, list):
        return [without_ranges(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in _RANGES}
    for key in ("items", "anyOf"):
        if key in result:
            result[key] = without_ranges(result[key])
    if "properties" in result:
        result["properties"] = {name: without_ranges(value) for name, value in result["properties"].items()}
    return result


_RANGES = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    }
)


class AnthropicConversation(Conversation):
    """A conversation in the Messages format."""

    path = _PATH

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": self.messages,
            **messages_params(self.spec, self.request),
        }
        if self.request.system:
            body["system"] = self.request.system
        if self.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in self.tools
            ]
        return body

    def read(self, reply: bytes) -> Turn | Failure:
        try:
            decoded = _decode_turn(reply)
            blocks = decoded.content
            calls = tuple(
                Call(id=block["id"], name=block["name"], arguments=block.get("input") or {})
                for block in blocks
                if block["type"] == "tool_use"
            )
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
        except BAD_TURN as error:
            return transport.unreadable(reply, "model turn", error)
        finish = finish_of(decoded.stop_reason)
        return Turn(
            text=text or (refusal_text(decode_or_none(decoded.stop_details)) if finish == REFUSED else ""),
            thinking="".join(text_or_none(block.get("thinking")) or "" for block in blocks),
            calls=calls,
            finish_reason=finish,
            usage=anthropic_usage(decode_or_none(decoded.usage)),
            model=text_or_none(decode_or_none(decoded.model)),
            raw={"role": "assistant", "content": blocks},
        )

    def add(self, turn: Turn, results: Sequence[Result]) -> None:
        answers = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": result.text,
                **({"is_error": True} if result.error else {}),
            }
            for result in results
        ]
        self.messages += [turn.raw, {"role": "user", "content": answers}]


class AnthropicApi(transport.HttpTarget):
    """A model behind the Messages API."""

    provider: ClassVar = Provider(
        kind="anthropic_api",
        base_url="${ANTHROPIC_BASE_URL:-https://api.anthropic.com}",
        api_key="${ANTHROPIC_API_KEY}",
    )
    api: ClassVar = Api(refuses=PENALTIES | {"seed"}, longest=_LONGEST, without_neutral=True)
    conversation: ClassVar = AnthropicConversation

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"x-api-key": spec.api_key, "anthropic-version": ANTHROPIC_VERSION}

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        return _read_whole(body, started)

    async def read_stream(self, response: ClientResponse, collected: transport.Collected) -> Answer | Failure:
        return await _read_stream(response, collected)

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [
                *({"role": message.role, "content": message.content} for message in request.history),
                {"role": "user", "content": _content(request)},
            ],
            **messages_params(self.spec, request),
        }
        if request.system:
            body["system"] = request.system
        if request.stream:
            body["stream"] = True
        return body


def _content(request: Request) -> str | list[dict[str, Any]]:
    """Return the prompt, preceded by its files."""
    if not request.files:
        return request.input
    return [*map(_file_block, request.files), {"type": "text", "text": request.input}]


def _file_block(file: File) -> dict[str, Any]:
    source = {"type": "base64", "media_type": file.media, "data": b64encode(file.body).decode()}
    return {"type": "image" if file.is_image else "document", "source": source}


def _read_whole(body: bytes, started: float) -> Answer | Failure:
    latency = (time.perf_counter() - started) * 1000
    try:
        message = _decode_message(body)
    except UNREADABLE as error:
        return transport.unreadable(body, "message", error)
    if message.error is not None:
        return _failure_in_reply(message.error)
    if message.type != "message":
        return Failure(kind="malformed", message="HTTP 200, but the reply has no message", retryable=True)
    blocks = message.content or []
    return _answer(
        text=_text_of(blocks),
        calls=[(block.name, block.input) for block in blocks if block.type == "tool_use" and block.name != REPLY_TOOL],
        details=message.stop_details,
        finish_reason=finish_of(message.stop_reason),
        usage=anthropic_usage(decode_or_none(message.usage)),
        model=text_or_none(decode_or_none(message.model)),
        latency_ms=latency,
        reasoning="".join(text_or_none(block.thinking) or "" for block in blocks) or None,
    )


def _text_of(blocks: list[_Block]) -> str:
    """Return the text, or the JSON if a schema was requested."""
    for block in blocks:
        if block.type == "tool_use" and block.name == REPLY_TOOL:
            return msgspec.json.encode(block.input).decode()
    return "".join(block.text or "" for block in blocks if block.type == "text")


def _answer(*, text: str, calls: list[tuple[Any, Any]], details: msgspec.Raw, **rest: Any) -> Answer:
    """Build an answer, marked as such if it is a refusal or consists only of tool calls."""
    if rest["finish_reason"] == REFUSED:
        text = text or refusal_text(decode_or_none(details))
    elif calls:
        rest["trace"] = calls_trace(calls)
        rest["finish_reason"] = rest["finish_reason"] if text.strip() else TOOL_CALLS
    return Answer(text=text, **rest)


class _Streamed:
    """A message assembled from stream events."""

    def __init__(self, collected: transport.Collected) -> None:
        self.collected = collected
        self.usage: dict[str, Any] = {}
        self.finish: str | None = None
        self.details = self.model = msgspec.Raw()
        self.done = False
        self._calls: dict[Any, tuple[Any, str]] = {}

    def take(self, event: _Event) -> None:
        """Add an event."""
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
        elif thought := text_or_none(delta.thinking):
            self.collected.think(thought)
        elif (arguments := text_or_none(delta.partial_json)) and place in self._calls:
            name, so_far = self._calls[place]
            self._calls[place] = (name, so_far + arguments)

    def _count(self, usage: msgspec.Raw) -> None:
        """Merge token counts, which arrive in pieces; later values replace earlier ones."""
        if usage and isinstance(counts := decode_or_none(usage), dict):
            self.usage |= {name: value for name, value in counts.items() if value is not None}

    @property
    def calls(self) -> list[tuple[Any, Any]]:
        """The tool calls that the model requested."""
        return list(self._calls.values())


async def _read_stream(response: ClientResponse, collected: transport.Collected) -> Answer | Failure:
    streamed = _Streamed(collected)
    async for data in sse_data(response):
        try:
            event = _decode_event(data)
        except UNREADABLE as error:
            return transport.unreadable_event(error)
        if event.type == "error":  # the usage until then is counted
            return transport.failed_mid_stream(_failure_in_reply(event.error), anthropic_usage(streamed.usage))
        streamed.take(event)
    if not streamed.done:
        return Failure(kind="stream", message="the stream ended before the answer was complete", retryable=True)
    return _answer(
        text=collected.text,
        calls=streamed.calls,
        details=streamed.details,
        finish_reason=streamed.finish,
        usage=anthropic_usage(streamed.usage),
        model=text_or_none(decode_or_none(streamed.model)),
        latency_ms=collected.latency_ms,
        first_token_ms=collected.first_token_ms,
        reasoning=collected.reasoning,
    )


def _failure_in_reply(error: Any) -> Failure:
    """Return the failure for an error that came with status 200, as in the middle of a stream."""
    kind = error.get("type") if isinstance(error, dict) else ""
    result = transport.error_of_status(_STATUS.get(str(kind), 500), msgspec.json.encode({"error": error}))
    assert isinstance(result, Failure), "Messages has no filter of its own"
    return result
