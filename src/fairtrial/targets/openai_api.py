"""`openai_api`: any server with OpenAI's chat completions API (OpenAI, OpenRouter, vLLM, Ollama, llama.cpp …)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.batches.openai import OpenaiBatches
from fairtrial.providers.conversation import Conversation, Turn, read_call
from fairtrial.providers.embeddings import PATH as EMBEDDINGS
from fairtrial.providers.embeddings import EmbeddingCall, openai_vector
from fairtrial.providers.errors import error_of_status, failed_mid_stream, malformed, unreadable, unreadable_event
from fairtrial.providers.params import provider_of, sheet_behind
from fairtrial.providers.replies import (
    UNREADABLE,
    decode_or_none,
    finish_of,
    is_first,
    openai_cost,
    openai_usage,
    place_of_first,
    text_or_none,
)
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.tools import RequestedCall, ToolResult, ToolRound
from fairtrial.providers.transport import HttpTarget, as_answer, endpoint


class _Message(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: Any = None
    tool_calls: Any = None
    reasoning_content: Any = None
    reasoning: Any = None

    def text(self) -> str:
        """Return the content, which a few servers send in parts."""
        if isinstance(self.content, list):
            return _texts(part for part in self.content if isinstance(part, dict) and part.get("type") != "thinking")
        return self.content or ""

    def thought(self) -> str:
        """Return the reasoning, whichever field it is in; Mistral sends it as a part of the content."""
        if isinstance(self.content, list):
            thoughts = (part.get("thinking") for part in self.content if isinstance(part, dict))
            return "".join(_texts(thought) for thought in thoughts if isinstance(thought, list))
        if self.reasoning_content is None and self.reasoning is None:
            return ""
        return text_or_none(self.reasoning_content) or text_or_none(self.reasoning) or ""

    def calls(self) -> list[dict[str, Any]]:
        return [call for call in self.tool_calls if isinstance(call, dict)] if isinstance(self.tool_calls, list) else []


def _texts(parts: Any) -> str:
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


class _Choice(msgspec.Struct):
    index: Any = None
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: Any = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()
    object: msgspec.Raw = msgspec.Raw()
    error: Any = None


_RENAMED = "max_completion_tokens"
_decode = msgspec.json.Decoder(_Reply).decode
_NULL = msgspec.Raw(b"null")
_ERROR = msgspec.Raw(b'"error"')


def _chat_params(spec: TargetSpec, params: dict[str, Any], limit_name: str) -> dict[str, Any]:
    """Return the parameters of a chat completions request, with `extra` unchanged."""
    extra, reasoning = params.pop("extra", {}), params.pop("reasoning", None)
    # OpenAI has renamed `max_tokens`; others have not, and routers (`openai/…`) use the old name for all models.
    renamed = spec.provider in ("openai", "azure") or (sheet_behind(spec).limit_name and "/" not in spec.model)
    renamed = renamed or limit_name == _RENAMED
    if "max_tokens" in params and renamed:
        params[_RENAMED] = params.pop("max_tokens")
    if reasoning is not None:
        params |= _reasoning(provider_of(spec).reasoning, reasoning)
    return {**params, **extra}


def _reasoning(key: str, setting: str | int) -> dict[str, Any]:
    if key == "reasoning":  # OpenRouter, for the models of all vendors
        return {key: {"effort": setting} if isinstance(setting, str) else {"max_tokens": setting}}
    return {key: setting}


class OpenaiConversation(Conversation):
    """A conversation in the chat completions format."""

    path: ClassVar[str] = "/chat/completions"

    def body(self) -> dict[str, Any]:
        request = self.request
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [*system, *self.messages],
            **_chat_params(self.spec, self.params(), self.limit_name),
        }
        if self.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in self.tools
            ]
        if request.schema is not None:
            shape = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return body

    def file_part(self, file: File) -> dict[str, Any]:
        data = f"data:{file.media};base64,{b64encode(file.body).decode()}"
        if file.is_image:
            return {"type": "image_url", "image_url": {"url": data}}
        return {"type": "file", "file": {"filename": file.name, "file_data": data}}

    @staticmethod
    def read(reply: bytes) -> Turn | Failure:
        try:
            decoded = _decode(reply)
        except UNREADABLE as error:
            return unreadable(reply, "chat completion", error)
        if (failed := _error_in(decoded, reply)) is not None:
            return failed
        choice = (
            decoded.choices[place_of_first([choice.index for choice in decoded.choices])]
            if decoded.choices
            else _Choice()
        )
        if (message := choice.message) is None:
            return malformed("the reply has no choices")
        return _turn(
            message.text(),
            text_or_none(message.refusal),
            finish_of(choice.finish_reason),
            decoded.usage,
            decoded.model,
            calls=tuple(read_call(*_parts_of(call)) for call in message.calls()),
            thinking=message.thought(),
            raw=reply,
        )

    def said(self, turn: Turn) -> list[Any]:
        choices = msgspec.json.decode(turn.raw)["choices"]
        return [choices[place_of_first([choice.get("index") for choice in choices])]["message"]]

    def called(self, step: ToolRound) -> list[Any]:
        message = {"role": "assistant", "content": step.text or None, "tool_calls": list(map(_call, step.calls()))}
        if step.thinking and provider_of(self.spec).wants_thoughts:
            message["reasoning_content"] = step.thinking
        return [message]

    def returned(self, results: Sequence[ToolResult]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results]


def _call(call: RequestedCall) -> dict[str, Any]:
    arguments = msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _turn(
    text: str, refusal: str | None, finish: str | None, usage: msgspec.Raw, model: msgspec.Raw, **rest: Any
) -> Turn:
    counts = decode_or_none(usage)
    return Turn(
        text="\n".join(filter(None, (text, refusal))),
        finish_reason=REFUSED if refusal else finish,
        usage=openai_usage(counts),
        model=text_or_none(decode_or_none(model)),
        cost_usd=openai_cost(counts),
        **rest,
    )


def _parts_of(call: dict[str, Any]) -> tuple[Any, Any, Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return call.get("id"), function.get("name"), function.get("arguments")


class OpenaiStreamed(Streamed):
    """A completion assembled from stream chunks."""

    def __init__(self, collected: Collected) -> None:
        super().__init__(collected)
        self.refusal = ""
        self.model = self.usage = msgspec.Raw()

    def take(self, data: bytes) -> Answer | Failure | None:
        """Add a chunk; the first may have no choice, and the last may have only usage."""
        if data == b"[DONE]":
            self.over = True
            return None
        try:
            reply = _decode(data)
        except UNREADABLE as error:
            return unreadable_event(error)
        if (failed := _error_in(reply, data)) is not None:
            return failed.answer(self.collected.latency_ms) if isinstance(failed, Turn) else failed_mid_stream(failed)
        self.model = reply.model or self.model
        if reply.usage and reply.usage != _NULL:
            self.usage = reply.usage
        for choice in reply.choices or ():
            if is_first(choice.index):  # others are answers that nobody asked for
                self._take_choice(choice)
        return None

    def _take_choice(self, choice: _Choice) -> None:
        if choice.finish_reason is not None:
            self.finish = finish_of(choice.finish_reason) or self.finish
            self.done = self.finish is not None
        if (delta := choice.delta) is None:
            return
        if text := delta.text():
            self.collected.say(text)
        elif thought := delta.thought():
            self.collected.think(thought)
        elif delta.refusal is not None:
            self.refusal += text_or_none(delta.refusal) or ""
        elif delta.tool_calls:
            for piece in delta.calls():
                self.add_call(piece.get("index"), *_parts_of(piece))

    def turn(self) -> Turn:
        collected = self.collected
        return _turn(
            collected.text,
            self.refusal,
            self.finish,
            self.usage,
            self.model,
            calls=self.calls,
            thinking=collected.thinking,
        )


class OpenaiApi(HttpTarget):
    """A model behind an OpenAI-compatible server."""

    conversation: ClassVar[type[Conversation]] = OpenaiConversation
    streamed: ClassVar[type[Streamed]] = OpenaiStreamed
    batch_api: ClassVar[type[BatchApi] | None] = OpenaiBatches

    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    embeds: ClassVar[bool] = True

    def embedding(self, text: str) -> EmbeddingCall:
        url = endpoint(self.spec.base_url, EMBEDDINGS)
        return EmbeddingCall(url, {"model": self.spec.model, "input": text}, openai_vector)

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        if request.stream:
            body["stream"] = True
            if provider_of(self.spec).stream_usage:
                body["stream_options"] = {"include_usage": True}
        return body


def _error_in(reply: _Reply, body: bytes) -> Turn | Failure | None:
    """Return an error that came with status 200, as routers send them; it may contain the real status."""
    if reply.error is None and reply.object != _ERROR:
        return None
    code = reply.error.get("code") if isinstance(reply.error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 400 if code == FILTERED else 500
    result = as_answer(error_of_status(status, body))
    if isinstance(result, Answer):  # a filter
        return Turn(text=result.text, finish_reason=result.finish_reason, usage=result.usage)
    return result
