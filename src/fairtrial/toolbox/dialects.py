"""How models are told of tools: one conversation, written in OpenAI's or in Anthropic's way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Request, Usage
from fairtrial.core.suite import TargetSpec
from fairtrial.params import anthropic_params, openai_params

_ANTHROPIC_VERSION = "2023-06-01"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `name` is unique over all servers."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model asks for; `problem` says why its arguments cannot be read."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said in one turn. `raw` is the turn as the conversation goes on with it."""

    text: str
    calls: tuple[Call, ...]
    finish_reason: str | None
    usage: Usage
    model: str | None
    raw: Any
    thinking: str = ""
    cost_usd: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool said."""

    call: Call
    text: str
    error: bool = False


class Dialect:
    """One conversation with one model."""

    path: str

    def __init__(self, spec: TargetSpec, request: Request, tools: Sequence[Tool]) -> None:
        self.spec, self._request, self._system, self._tools = spec, request, request.system, tools
        self._messages: list[Any] = [{"role": "user", "content": request.input}]

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.spec.base_url.rstrip("/") + self.path

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        """Who we are."""
        raise NotImplementedError

    def body(self) -> dict[str, Any]:
        """The conversation so far, as a request."""
        raise NotImplementedError

    def read(self, reply: bytes) -> Said | Failure:
        """One more turn of the model."""
        raise NotImplementedError

    def add(self, said: Said, results: Sequence[Result]) -> None:
        """Go on with what the model said and what its tools answered."""
        raise NotImplementedError


class OpenAi(Dialect):
    """Chat completions."""

    path = "/chat/completions"

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"Authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}

    def body(self) -> dict[str, Any]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": [*system, *self._messages],
            **openai_params(self.spec, self._request),
        }
        if self._tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in self._tools
            ]
        return body

    def read(self, reply: bytes) -> Said | Failure:
        try:
            found = msgspec.json.decode(reply)
            choice = found["choices"][0]
            message = choice["message"]
            calls = tuple(
                _call(call["id"], call["function"]["name"], call["function"].get("arguments") or "{}")
                for call in message.get("tool_calls") or ()
            )
        except (msgspec.DecodeError, KeyError, IndexError, TypeError) as error:
            return _unreadable(error)
        usage = found.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        return Said(
            text=message.get("content") or "",
            thinking=message.get("reasoning_content") or message.get("reasoning") or "",
            calls=calls,
            finish_reason=choice.get("finish_reason"),
            usage=Usage(
                prompt=usage.get("prompt_tokens") or 0,
                completion=usage.get("completion_tokens") or 0,
                cache_read=details.get("cached_tokens") or 0,
            ),
            model=found.get("model"),
            raw=message,
            cost_usd=usage.get("cost"),
        )

    def add(self, said: Said, results: Sequence[Result]) -> None:
        self._messages.append(said.raw)
        self._messages += [
            {"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in results
        ]


class Anthropic(Dialect):
    """Messages."""

    path = "/v1/messages"

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return {"x-api-key": spec.api_key, "anthropic-version": _ANTHROPIC_VERSION}

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": self._messages,
            **anthropic_params(self._request),
        }
        if self._system:
            body["system"] = self._system
        if self._tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in self._tools
            ]
        return body

    def read(self, reply: bytes) -> Said | Failure:
        try:
            found = msgspec.json.decode(reply)
            blocks = found["content"]
            calls = tuple(
                Call(id=block["id"], name=block["name"], arguments=block.get("input") or {})
                for block in blocks
                if block["type"] == "tool_use"
            )
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            return _unreadable(error)
        usage = found.get("usage") or {}
        read, written = (usage.get(f"cache_{what}_input_tokens") or 0 for what in ("read", "creation"))
        reasons = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
        reason = found.get("stop_reason")
        return Said(
            text="".join(block["text"] for block in blocks if block["type"] == "text"),
            thinking="".join(block.get("thinking") or "" for block in blocks if block["type"] == "thinking"),
            calls=calls,
            finish_reason=reasons.get(reason, reason),
            usage=Usage(
                prompt=(usage.get("input_tokens") or 0) + read + written,
                completion=usage.get("output_tokens") or 0,
                cache_read=read,
                cache_write=written,
            ),
            model=found.get("model"),
            raw={"role": "assistant", "content": blocks},
        )

    def add(self, said: Said, results: Sequence[Result]) -> None:
        answers = [
            {
                "type": "tool_result",
                "tool_use_id": result.call.id,
                "content": result.text,
                **({"is_error": True} if result.error else {}),
            }
            for result in results
        ]
        self._messages += [said.raw, {"role": "user", "content": answers}]


DIALECTS: dict[str, type[Dialect]] = {"openai_api": OpenAi, "anthropic_api": Anthropic}


def _call(identity: str, name: str, arguments: str) -> Call:
    try:
        found = msgspec.json.decode(arguments)
    except msgspec.DecodeError as error:
        return Call(id=identity, name=name, arguments={}, problem=f"the arguments are not JSON: {error}")
    if not isinstance(found, dict):
        return Call(id=identity, name=name, arguments={}, problem="the arguments are not a JSON object")
    return Call(id=identity, name=name, arguments=found)


def _unreadable(error: Exception) -> Failure:
    return Failure(kind="malformed", message=f"HTTP 200 with no turn of a model ({error})", retryable=True)
