"""`openai_api`: any server with OpenAI's chat completions API (OpenAI, OpenRouter, vLLM, Ollama, llama.cpp …)."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, TOOL_CALLS, Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.core.providers import Provider
from fairtrial.providers import transport
from fairtrial.providers.conversation import BAD_TURN, Conversation, Result, Turn, read_call
from fairtrial.providers.embeddings import post_embedding
from fairtrial.providers.params import model_of, supported_params
from fairtrial.providers.replies import (
    UNREADABLE,
    calls_trace,
    decode_or_none,
    finish_of,
    openai_cost,
    openai_usage,
    text_or_none,
)
from fairtrial.providers.streams import sse_data

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: Any = None
    tool_calls: Any = None
    reasoning_content: Any = None
    reasoning: Any = None

    def text(self) -> str:
        """Return the content, which a few servers send in parts."""
        if isinstance(self.content, list):
            parts = (part.get("text") for part in self.content if isinstance(part, dict))
            return "".join(part for part in parts if isinstance(part, str))
        return self.content or ""

    def thought(self) -> str | None:
        """Return the reasoning, whichever field it is in."""
        if self.reasoning_content is None and self.reasoning is None:
            return None
        return text_or_none(self.reasoning_content) or text_or_none(self.reasoning)


class _Choice(msgspec.Struct):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: Any = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()
    object: msgspec.Raw = msgspec.Raw()
    error: Any = None


class _Turn(msgspec.Struct):
    choices: Any = None
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()


_decode_turn = msgspec.json.Decoder(_Turn).decode
_decode = msgspec.json.Decoder(_Reply).decode
_PATH = "/chat/completions"
_NULL = msgspec.Raw(b"null")
_ERROR = msgspec.Raw(b'"error"')


def chat_params(spec: TargetSpec, request: Request, *, tools: bool = False) -> dict[str, Any]:
    """Return the parameters of a chat completions request, with `extra` unchanged."""
    params = supported_params(spec, request.params, tools=tools)
    extra = params.pop("extra", {})
    # OpenAI has renamed `max_tokens`; others have not, and routers (`openai/gpt-5`) use the old name for all models.
    renamed = spec.provider == "openai" or (model_of(spec.model).long_name and "/" not in spec.model)
    if "max_tokens" in params and renamed:
        params["max_completion_tokens"] = params.pop("max_tokens")
    return {**params, **extra}


class OpenaiConversation(Conversation):
    """A conversation in the chat completions format."""

    path = _PATH

    def body(self) -> dict[str, Any]:
        system = [{"role": "system", "content": self.request.system}] if self.request.system else []
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [*system, *self.messages],
            **chat_params(self.spec, self.request, tools=bool(self.tools)),
        }
        if self.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in self.tools
            ]
        return body

    def read(self, reply: bytes) -> Turn | Failure:
        try:
            decoded = _decode_turn(reply)
            choice = decoded.choices[0]
            message = choice["message"]
            calls = tuple(
                read_call(call["id"], call["function"]["name"], call["function"].get("arguments") or "{}")
                for call in message.get("tool_calls") or ()
            )
        except BAD_TURN as error:
            return transport.unreadable(reply, "model turn", error)
        refusal = text_or_none(message.get("refusal"))
        usage = decode_or_none(decoded.usage)
        return Turn(
            text="\n".join(filter(None, (text_or_none(message.get("content")), refusal))),
            thinking=text_or_none(message.get("reasoning_content")) or text_or_none(message.get("reasoning")) or "",
            calls=calls,
            finish_reason=REFUSED if refusal else finish_of(choice.get("finish_reason")),
            usage=openai_usage(usage),
            model=text_or_none(decode_or_none(decoded.model)),
            raw=message,
            cost_usd=openai_cost(usage),
        )

    def add(self, turn: Turn, results: Sequence[Result]) -> None:
        self.messages.append(turn.raw)
        self.messages += [
            {"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results
        ]


class OpenaiApi(transport.HttpTarget):
    """A model behind an OpenAI-compatible server."""

    provider: ClassVar = Provider(
        kind="openai_api",
        base_url="${OPENAI_BASE_URL:-https://api.openai.com/v1}",
        api_key="${OPENAI_API_KEY}",
    )
    conversation: ClassVar = OpenaiConversation

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    embeds: ClassVar[bool] = True

    async def ask(self, request: Request) -> Answer | Failure:
        if request.embed:
            return await post_embedding(self._session, self.spec, request)
        return await super().ask(request)

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"Authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        return _read_whole(body, started)

    async def read_stream(self, response: ClientResponse, collected: transport.Collected) -> Answer | Failure:
        return await _read_stream(response, collected)

    def body(self, request: Request) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
        messages += [{"role": message.role, "content": message.content} for message in request.history]
        messages.append({"role": "user", "content": _content(request)})
        body: dict[str, Any] = {"model": self.spec.model, "messages": messages, **chat_params(self.spec, request)}
        if request.schema is not None:
            shape = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if request.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return body


def _content(request: Request) -> str | list[dict[str, Any]]:
    """Return the prompt, preceded by its files."""
    if not request.files:
        return request.input
    return [*map(_file_part, request.files), {"type": "text", "text": request.input}]


def _file_part(file: File) -> dict[str, Any]:
    data = f"data:{file.media};base64,{b64encode(file.body).decode()}"
    if file.is_image:
        return {"type": "image_url", "image_url": {"url": data}}
    return {"type": "file", "file": {"filename": file.name, "file_data": data}}


def _read_whole(body: bytes, started: float) -> Answer | Failure:
    latency = (time.perf_counter() - started) * 1000
    try:
        reply = _decode(body)
    except UNREADABLE as error:
        return transport.unreadable(body, "chat completion", error)
    if (failure := _error_in(reply, body)) is not None:
        return failure
    if not reply.choices or reply.choices[0].message is None:
        return Failure(kind="malformed", message="HTTP 200, but the reply has no choices", retryable=True)
    message = reply.choices[0].message
    calls = [_function(call) for call in message.tool_calls] if isinstance(message.tool_calls, list) else []
    usage = decode_or_none(reply.usage)
    return _answer(
        text=message.text(),
        refusal=text_or_none(message.refusal),
        calls=calls,
        finish_reason=finish_of(reply.choices[0].finish_reason),
        usage=openai_usage(usage),
        model=text_or_none(decode_or_none(reply.model)),
        latency_ms=latency,
        reasoning=message.thought(),
        cost_usd=openai_cost(usage),
    )


def _answer(*, text: str, refusal: str | None, calls: list[tuple[Any, Any]], **rest: Any) -> Answer:
    """Build an answer, marked as such if it is a refusal or consists only of tool calls."""
    if refusal:
        rest["finish_reason"] = REFUSED
        text = f"{text}\n{refusal}" if text else refusal
    elif calls:
        rest["trace"] = calls_trace(calls)
        rest["finish_reason"] = rest["finish_reason"] if text.strip() else TOOL_CALLS
    return Answer(text=text, **rest)


class _Streamed:
    """A completion assembled from stream chunks."""

    def __init__(self, collected: transport.Collected) -> None:
        self.collected = collected
        self.refusal = ""
        self.finish: str | None = None
        self.model = self.usage = msgspec.Raw()
        self.calls: dict[str, tuple[Any, str]] = {}

    def take(self, reply: _Reply) -> None:
        """Add a chunk; the first may have no choice, and the last may have only usage."""
        self.model = reply.model or self.model
        if reply.usage and reply.usage != _NULL:
            self.usage = reply.usage
        if not reply.choices:
            return
        choice = reply.choices[0]
        if choice.finish_reason is not None:
            self.finish = finish_of(choice.finish_reason) or self.finish
        if (delta := choice.delta) is None:
            return
        if text := delta.text():
            self.collected.say(text)
        elif thought := delta.thought():
            self.collected.think(thought)
        elif delta.refusal is not None:
            self.refusal += text_or_none(delta.refusal) or ""
        elif delta.tool_calls:
            _add_calls(self.calls, delta.tool_calls)


async def _read_stream(response: ClientResponse, collected: transport.Collected) -> Answer | Failure:
    streamed = _Streamed(collected)
    async for data in sse_data(response):
        if data == b"[DONE]":
            break
        try:
            reply = _decode(data)
        except UNREADABLE as error:
            return transport.unreadable_event(error)
        if (failure := _error_in(reply, data)) is not None:
            return transport.failed_mid_stream(failure)
        streamed.take(reply)
    if streamed.finish is None:
        return Failure(kind="stream", message="the stream ended before the answer was complete", retryable=True)
    usage = decode_or_none(streamed.usage)
    return _answer(
        text=collected.text,
        refusal=streamed.refusal,
        calls=list(streamed.calls.values()),
        finish_reason=streamed.finish,
        usage=openai_usage(usage),
        model=text_or_none(decode_or_none(streamed.model)),
        latency_ms=collected.latency_ms,
        first_token_ms=collected.first_token_ms,
        reasoning=collected.reasoning,
        cost_usd=openai_cost(usage),
    )


def _function(call: Any) -> tuple[Any, Any]:
    """Return a call's name and arguments."""
    function = call.get("function") if isinstance(call, dict) else None
    return (function.get("name"), function.get("arguments")) if isinstance(function, dict) else (None, None)


def _add_calls(calls: dict[str, tuple[Any, str]], pieces: Any) -> None:
    """Merge tool calls, which also arrive in pieces: first a name, then parts of the arguments."""
    for piece in pieces if isinstance(pieces, list) else ():
        name, arguments = _function(piece)
        index = str(piece.get("index")) if isinstance(piece, dict) else ""
        known_name, so_far = calls.get(index, (None, ""))
        calls[index] = (known_name or name, so_far + (arguments if isinstance(arguments, str) else ""))


def _error_in(reply: _Reply, body: bytes) -> Answer | Failure | None:
    """Return an error that came with status 200, as routers send them; it may contain the real status."""
    if reply.error is None and reply.object != _ERROR:
        return None
    code = reply.error.get("code") if isinstance(reply.error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 400 if code == FILTERED else 500
    return transport.as_answer(transport.error_of_status(status, body))
