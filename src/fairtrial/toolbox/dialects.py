"""How models are told of tools: one conversation, written in OpenAI's or in Anthropic's way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import REFUSED, Failure, Request, Usage
from fairtrial.core.suite import TargetSpec
from fairtrial.providers import transport
from fairtrial.providers.params import ANTHROPIC_VERSION, anthropic_params, openai_params
from fairtrial.providers.replies import (
    UNREADABLE,
    anthropic_usage,
    finish_of,
    loose,
    name_of,
    openai_cost,
    openai_usage,
    refusal_text,
)

_UNREADABLE = (*UNREADABLE, KeyError, IndexError, TypeError, AttributeError)


class _Reply(msgspec.Struct):
    choices: Any = None
    content: Any = None
    stop_reason: Any = None
    stop_details: msgspec.Raw = msgspec.Raw()
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Reply).decode


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
    usage: Usage | None
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
        return transport.endpoint(self.spec.base_url, self.path)

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
            **openai_params(self.spec, self._request, tools=bool(self._tools)),
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
            found = _decode(reply)
            choice = found.choices[0]
            message = choice["message"]
            calls = tuple(
                _call(call["id"], call["function"]["name"], call["function"].get("arguments") or "{}")
                for call in message.get("tool_calls") or ()
            )
        except _UNREADABLE as error:
            return transport.unreadable(reply, "turn of a model", error)
        refusal = name_of(message.get("refusal"))
        usage = loose(found.usage)
        return Said(
            text="\n".join(filter(None, (name_of(message.get("content")), refusal))),
            thinking=name_of(message.get("reasoning_content")) or name_of(message.get("reasoning")) or "",
            calls=calls,
            finish_reason=REFUSED if refusal else finish_of(choice.get("finish_reason")),
            usage=openai_usage(usage),
            model=name_of(loose(found.model)),
            raw=message,
            cost_usd=openai_cost(usage),
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
        return {"x-api-key": spec.api_key, "anthropic-version": ANTHROPIC_VERSION}

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.spec.model,
            "messages": self._messages,
            **anthropic_params(self.spec, self._request),
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
            found = _decode(reply)
            blocks = found.content
            calls = tuple(
                Call(id=block["id"], name=block["name"], arguments=block.get("input") or {})
                for block in blocks
                if block["type"] == "tool_use"
            )
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
        except _UNREADABLE as error:
            return transport.unreadable(reply, "turn of a model", error)
        finish = finish_of(found.stop_reason)
        return Said(
            text=text or (refusal_text(loose(found.stop_details)) if finish == REFUSED else ""),
            thinking="".join(name_of(block.get("thinking")) or "" for block in blocks),
            calls=calls,
            finish_reason=finish,
            usage=anthropic_usage(loose(found.usage)),
            model=name_of(loose(found.model)),
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
