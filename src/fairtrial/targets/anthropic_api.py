"""`anthropic_api`: Anthropic's Messages API."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import REFUSED, Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.batches.anthropic import AnthropicBatches
from fairtrial.providers.conversation import Conversation, Turn, read_call, without_ranges
from fairtrial.providers.errors import error_of_status, failed_mid_stream, malformed, unreadable, unreadable_event
from fairtrial.providers.params import PENALTIES, Api, sheet_behind, thinking_of
from fairtrial.providers.reasoning import Reasoning
from fairtrial.providers.replies import (
    UNREADABLE,
    anthropic_usage,
    decode_or_none,
    finish_of,
    refusal_text,
    text_or_none,
)
from fairtrial.providers.sheet import Sheet
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.tools import ToolResult, ToolRound
from fairtrial.providers.transport import HttpTarget

# Sent with every call to Messages. Do not raise it without care: from 2026-10-21 on the API rejects temperature, top_p
# and top_k on every model, even at their defaults, while 2023-06-01 still accepts them on models that support them.
ANTHROPIC_VERSION = "2023-06-01"

REPLY_TOOL = "reply"  # the tool through which older Claude models return JSON

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
    id: Any = None
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


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


def _messages_params(spec: TargetSpec, request: Request, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a Messages request, with `extra` unchanged and the schema if there is one."""
    extra, reasoning = params.pop("extra", {}), params.pop("reasoning", None)
    body: dict[str, Any] = {_NAMES[name]: value for name, value in params.items() if name in _NAMES}
    body |= thinking_params(reasoning, sheet_behind(spec))
    body |= extra
    if request.schema is None:
        return body
    if sheet_behind(spec).schemas:
        shape = {"type": "json_schema", "schema": without_ranges(request.schema)}
        return {**body, "output_config": {**body.get("output_config", {}), "format": shape}}
    tool = {"name": REPLY_TOOL, "description": "The reply.", "input_schema": request.schema}
    # A tool cannot be forced while thinking is on.
    choice = {"type": "auto"} if thinking_of(body) else {"type": "tool", "name": REPLY_TOOL}
    return {**body, "tools": [tool], "tool_choice": choice}


def thinking_params(reasoning: Reasoning | None, sheet: Sheet) -> dict[str, Any]:
    """Return how Claude's thinking is set: a budget of tokens, or an effort for models that adapt."""
    if reasoning is None:
        return {}
    if reasoning in (0, "none"):
        return {"thinking": {"type": sheet.reasoning.off if sheet.reasoning else "disabled"}}
    if isinstance(reasoning, str):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": reasoning}}
    return {"thinking": {"type": "enabled", "budget_tokens": reasoning}}


class AnthropicConversation(Conversation):
    """A conversation in the Messages format."""

    path: ClassVar[str] = "/v1/messages"

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": self.messages,
            **_messages_params(self.spec, self.request, self.params()),
        }
        if self.request.system:
            body["system"] = self.request.system
        if self.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in self.tools
            ]
        return body

    def file_part(self, file: File) -> dict[str, Any]:
        source = {"type": "base64", "media_type": file.media, "data": b64encode(file.body).decode()}
        return {"type": "image" if file.is_image else "document", "source": source}

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        try:
            message = _decode_message(reply)
        except UNREADABLE as error:
            return unreadable(reply, "message", error)
        if message.error is not None:
            return _failure_in_reply(message.error)
        if message.type != "message":
            return malformed("the reply has no message")
        blocks = message.content or []
        return _turn(
            _text_of(blocks),
            finish_of(message.stop_reason),
            message.stop_details,
            usage=anthropic_usage(decode_or_none(message.usage)),
            model=text_or_none(decode_or_none(message.model)),
            calls=tuple(
                read_call(block.id, block.name, block.input)
                for block in blocks
                if block.type == "tool_use" and block.name != REPLY_TOOL
            ),
            thinking="".join(text_or_none(block.thinking) or "" for block in blocks),
            raw=reply,
        )

    def said(self, turn: Turn) -> list[Any]:
        return [{"role": "assistant", "content": msgspec.json.decode(turn.raw)["content"]}]

    def called(self, step: ToolRound) -> list[Any]:
        texts = [{"type": "text", "text": step.text}] if step.text else []
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in step.calls()
        ]
        return [{"role": "assistant", "content": [*texts, *calls]}]

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        answers = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": result.text,
                **({"is_error": True} if result.error else {}),
            }
            for result in results
        ]
        return [{"role": "user", "content": answers}]


def _text_of(blocks: list[_Block]) -> str:
    """Return the text, or the JSON if a schema was requested."""
    for block in blocks:
        if block.type == "tool_use" and block.name == REPLY_TOOL:
            return msgspec.json.encode(block.input).decode()
    return "".join(block.text or "" for block in blocks if block.type == "text")


def _turn(text: str, finish: str | None, details: msgspec.Raw, **rest: Any) -> Turn:
    if finish == REFUSED:
        text = text or refusal_text(decode_or_none(details))
    return Turn(text=text, finish_reason=finish, **rest)


class AnthropicStreamed(Streamed):
    """A message assembled from stream events."""

    def __init__(self, collected: Collected) -> None:
        super().__init__(collected)
        self.usage: dict[str, Any] = {}
        self.details = self.model = msgspec.Raw()

    def take(self, data: bytes) -> Answer | Failure | None:
        try:
            event = _decode_event(data)
        except UNREADABLE as error:
            return unreadable_event(error)
        if event.type == "error":  # the usage until then is counted
            return failed_mid_stream(_failure_in_reply(event.error), anthropic_usage(self.usage))
        if event.message is not None:
            self.model = event.message.model
            self._count(event.message.usage)
        self._count(event.usage)
        self.done = self.done or event.type == "message_stop"
        if event.content_block is not None and event.content_block.type == "tool_use":
            self.add_call(event.index, event.content_block.id, event.content_block.name)
        if (delta := event.delta) is not None:
            self._take_delta(delta, event.index)
        return None

    def _take_delta(self, delta: _Block, place: Any) -> None:
        self.finish = finish_of(delta.stop_reason) or self.finish
        self.details = delta.stop_details or self.details
        if delta.text:
            self.collected.say(delta.text)
        elif thought := text_or_none(delta.thinking):
            self.collected.think(thought)
        elif (arguments := text_or_none(delta.partial_json)) and str(place) in self._calls:
            self.add_call(place, arguments=arguments)

    def _count(self, usage: msgspec.Raw) -> None:
        """Merge token counts, which arrive in pieces; later values replace earlier ones."""
        if usage and isinstance(counts := decode_or_none(usage), dict):
            self.usage |= {name: value for name, value in counts.items() if value is not None}

    def turn(self) -> Turn:
        return _turn(
            self.collected.text,
            self.finish,
            self.details,
            usage=anthropic_usage(self.usage),
            model=text_or_none(decode_or_none(self.model)),
            calls=self.calls,
            thinking=self.collected.thinking,
        )


class AnthropicApi(HttpTarget):
    """A model behind the Messages API."""

    api: ClassVar[Api] = Api(refuses=PENALTIES | {"seed"}, longest=_LONGEST, without_neutral=True, blank_stops=False)
    conversation: ClassVar[type[Conversation]] = AnthropicConversation
    streamed: ClassVar[type[Streamed]] = AnthropicStreamed
    batch_api: ClassVar[type[BatchApi] | None] = AnthropicBatches

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"x-api-key": spec.api_key, "anthropic-version": ANTHROPIC_VERSION}

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "stream": True} if request.stream else body


def _failure_in_reply(error: Any) -> Failure:
    """Return the failure for an error that came with status 200, as in the middle of a stream."""
    kind = error.get("type") if isinstance(error, dict) else ""
    result = error_of_status(_STATUS.get(str(kind), 500), msgspec.json.encode({"error": error}))
    assert isinstance(result, Failure), "Messages has no filter of its own"
    return result
