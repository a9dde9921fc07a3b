"""What happened in a trial, as one ordered list: messages, reasoning, tool calls, their results, changed files, limits.

A list goes over all turns of a conversation and over subagents. It is stored in the trace of the answer (`events`), and
whatever else speaks of a trial's steps is read off it: its tool calls, its messages. What a target does not tell is
not in the list, and `not_told` of the trace names the turns whose calls are unknown, which is not the same as "none".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Source = Literal["live", "recorded", "mock"]  # where a tool's result came from
LimitKind = Literal["time", "turns", "tokens", "money"]
OnLimit = Literal["check", "wrong", "fail"]  # what one is that an agent reaches: scored as it is, 0, or a failure
ChangeKind = Literal["added", "modified", "removed"]


class BaseEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every event has: when it happened, and in whose work."""

    turn: int = 1  # of the conversation
    at: float | None = None  # seconds since the turn began; None: not told
    agent: str = ""  # the subagent that did it; empty: the agent itself
    within: str = ""  # the id of the call that started the subagent


class MessageEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    """A message: of the user, of the agent, or of its system."""

    text: str
    role: Literal["user", "assistant", "system"] = "assistant"
    model: str | None = None


class ReasoningEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reasoning"):
    """Reasoning of the model, where it is reported."""

    text: str


class CallEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call"):
    """A tool was called; `server` is None for the agent's own tools."""

    id: str  # unique in the list; the result has it too
    tool: str
    server: str | None = None
    arguments: Any = None


class ResultEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="result"):
    """A call came back. One that never did has no such event."""

    call: str
    text: str = ""
    error: bool = False
    rejected: bool = False  # it was not carried out, because the agent's permissions or its user forbade it
    ms: float | None = None
    source: Source = "live"


class ChangeEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="change"):
    """A file of the workspace was changed, as seen at the end of a turn."""

    path: str
    how: ChangeKind = "modified"


class LimitEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="limit"):
    """The agent reached a limit, which ended its work."""

    kind: LimitKind
    limit: float | None = None


class ErrorEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="error"):
    """Something went wrong that is not the result of a tool: in the agent, at its model, around it."""

    text: str
    kind: str = ""


class NoteEvent(BaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="note"):
    """Anything else worth knowing, such as that the agent shortened its own context."""

    text: str
    kind: str = ""  # `end`: why the conversation ended


Event = MessageEvent | ReasoningEvent | CallEvent | ResultEvent | ChangeEvent | LimitEvent | ErrorEvent | NoteEvent


def read_events(values: Any) -> tuple[Event, ...]:
    """Return events from JSON data; raise msgspec.ValidationError if they are none."""
    return msgspec.convert(values, tuple[Event, ...])


def as_data(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return events as JSON data."""
    return msgspec.to_builtins(list(events))  # type: ignore[no-any-return]
