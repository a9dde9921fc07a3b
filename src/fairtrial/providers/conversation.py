"""A conversation with a model that is given tools; each API has its own way to write one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.replies import UNREADABLE

# What reading a turn may raise.
BAD_TURN = (*UNREADABLE, KeyError, IndexError, TypeError, AttributeError)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it; `name` is unique over all servers."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a model asks for; `problem` says why its arguments cannot be read."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
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


class Conversation:
    """One conversation with one model. Each API (`targets/*_api.py`) has a subclass."""

    path: str  # of the API, below a provider's base URL

    def __init__(self, spec: TargetSpec, request: Request, tools: Sequence[Tool]) -> None:
        self.spec, self.request, self.tools = spec, request, tools
        self.messages: list[Any] = [{"role": "user", "content": request.input}]

    def body(self) -> dict[str, Any]:
        """The conversation so far, as a request."""
        raise NotImplementedError

    def read(self, reply: bytes) -> Turn | Failure:
        """One more turn of the model."""
        raise NotImplementedError

    def add(self, turn: Turn, results: Sequence[Result]) -> None:
        """Go on with what the model said and what its tools answered."""
        raise NotImplementedError


def read_call(identity: str, name: str, arguments: str) -> Call:
    """A call whose arguments are JSON in a text."""
    try:
        found = msgspec.json.decode(arguments)
    except msgspec.DecodeError as error:
        return Call(id=identity, name=name, arguments={}, problem=f"the arguments are not JSON: {error}")
    if not isinstance(found, dict):
        return Call(id=identity, name=name, arguments={}, problem="the arguments are not a JSON object")
    return Call(id=identity, name=name, arguments=found)
