"""A conversation with a model that has tools; each API has its own format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.replies import UNREADABLE

# The exceptions that reading a turn may raise.
BAD_TURN = (*UNREADABLE, KeyError, IndexError, TypeError, AttributeError)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; `name` is unique across all servers."""

    name: str
    server: str
    tool: str
    description: str
    schema: dict[str, Any]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call requested by a model; `problem` says why its arguments cannot be read."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply in one turn. `raw` is the turn as it is sent back in the conversation."""

    text: str
    calls: tuple[Call, ...]
    finish_reason: str | None
    usage: Usage | None
    model: str | None
    raw: Any
    thinking: str = ""
    cost_usd: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    call: Call
    text: str
    error: bool = False


class Conversation:
    """One conversation with one model. Each API (`targets/*_api.py`) has a subclass."""

    path: str  # of the API, below a provider's base URL

    def __init__(self, spec: TargetSpec, request: Request, tools: Sequence[Tool]) -> None:
        self.spec, self.request, self.tools = spec, request, tools
        self.messages: list[Any] = [
            *({"role": message.role, "content": message.content} for message in request.history),
            {"role": "user", "content": request.input},
        ]

    def body(self) -> dict[str, Any]:
        """Return the conversation so far as a request body."""
        raise NotImplementedError

    def read(self, reply: bytes) -> Turn | Failure:
        """Read the model's next turn."""
        raise NotImplementedError

    def add(self, turn: Turn, results: Sequence[Result]) -> None:
        """Append the model's turn and the results of its tool calls."""
        raise NotImplementedError


def read_call(identity: str, name: str, arguments: str) -> Call:
    """Read a call whose arguments are a JSON string."""
    try:
        decoded = msgspec.json.decode(arguments)
    except msgspec.DecodeError as error:
        return Call(id=identity, name=name, arguments={}, problem=f"the arguments are not JSON: {error}")
    if not isinstance(decoded, dict):
        return Call(id=identity, name=name, arguments={}, problem="the arguments are not a JSON object")
    return Call(id=identity, name=name, arguments=decoded)
