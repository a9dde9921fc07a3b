"""`openai_api`: any server that speaks OpenAI's chat completions (OpenAI, OpenRouter, vLLM, Ollama, llama.cpp …)."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from fairtrial import wire
from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.hearing import listening
from fairtrial.params import openai_params

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class _TokenDetails(msgspec.Struct):
    cached_tokens: int | None = 0
    reasoning_tokens: int | None = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _TokenDetails | None = None
    completion_tokens_details: _TokenDetails | None = None
    cost: float | None = None  # OpenRouter says what it charged

    def as_usage(self) -> Usage:
        prompt, completion = self.prompt_tokens_details, self.completion_tokens_details
        return Usage(
            prompt=self.prompt_tokens or 0,
            completion=self.completion_tokens or 0,
            cache_read=(prompt.cached_tokens or 0) if prompt else 0,
            reasoning=(completion.reasoning_tokens or 0) if completion else 0,
        )


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    def text(self) -> str:
        """The content, which a few servers send in parts."""
        if isinstance(self.content, list):
            return "".join(str(part.get("text") or "") for part in self.content)
        return self.content or ""


class _Choice(msgspec.Struct):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    model: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Reply).decode


class OpenaiApi(wire.HttpTarget):
    """One model behind an OpenAI-compatible server."""

    takes_images: ClassVar[bool] = True

    def url(self) -> str:
        return f"{self.spec.base_url.rstrip('/')}/chat/completions"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.spec.api_key}"} if self.spec.api_key else {}

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        return _read_whole(body, started)

    async def read_stream(self, response: ClientResponse, started: float) -> Answer | Failure:
        return await _read_stream(response, started)

    def body(self, request: Request) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": _content(request)}]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        body: dict[str, Any] = {"model": self.spec.model, "messages": messages, **openai_params(self.spec, request)}
        if request.schema is not None:
            shape = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        if request.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return body


def _content(request: Request) -> str | list[dict[str, Any]]:
    """The question, with its pictures in front of it."""
    if not request.images:
        return request.input
    urls = [f"data:{image.media};base64,{b64encode(image.body).decode()}" for image in request.images]
    pictures: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [*pictures, {"type": "text", "text": request.input}]


def _read_whole(body: bytes, started: float) -> Answer | Failure:
    latency = (time.perf_counter() - started) * 1000
    try:
        reply = _decode(body)
    except msgspec.MsgspecError as error:
        what = "an empty body" if not body.strip() else f"no chat completion ({error})"
        return Failure(kind="malformed", message=f"HTTP 200 with {what}", retryable=True)
    if reply.error is not None:
        return _failure_in_reply(reply.error)
    if not reply.choices or reply.choices[0].message is None:
        return Failure(kind="malformed", message="HTTP 200 without a choice", retryable=True)
    choice = reply.choices[0]
    message = choice.message or _Message()
    return Answer(
        text=message.text(),
        finish_reason=choice.finish_reason,
        usage=reply.usage.as_usage() if reply.usage else None,
        model=reply.model,
        latency_ms=latency,
        reasoning=message.reasoning_content or message.reasoning,
        cost_usd=reply.usage.cost if reply.usage else None,
    )


async def _read_stream(response: ClientResponse, started: float) -> Answer | Failure:
    texts: list[str] = []
    thoughts: list[str] = []
    finish = first = model = usage = None
    ear = listening.get()
    async for data in wire.sse_data(response):
        if data == b"[DONE]":
            break
        try:
            reply = _decode(data)
        except msgspec.MsgspecError as error:
            return Failure(kind="stream", message=f"unreadable event in the stream: {error}", retryable=True)
        if reply.error is not None:
            return _failure_in_reply(reply.error)
        model, usage = reply.model or model, reply.usage or usage
        if reply.choices:
            choice = reply.choices[0]
            finish = choice.finish_reason or finish
            delta = choice.delta
            if delta is not None:
                if text := delta.text():
                    first = first or time.perf_counter()
                    texts.append(text)
                    ear.piece(text)
                elif thought := delta.reasoning_content or delta.reasoning:
                    thoughts.append(thought)
    if finish is None:
        return Failure(kind="stream", message="the stream ended before the answer did", retryable=True)
    return Answer(
        text="".join(texts),
        finish_reason=finish,
        usage=usage.as_usage() if usage else None,
        model=model,
        latency_ms=(time.perf_counter() - started) * 1000,
        first_token_ms=(first - started) * 1000 if first else None,
        reasoning="".join(thoughts) or None,
        cost_usd=usage.cost if usage else None,
    )


def _failure_in_reply(error: Any) -> Failure:
    """An error that came with status 200, as OpenRouter sends them; it may carry the real status."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return wire.failure_of_status(status, msgspec.json.encode({"error": error}))
