"""What an agent did on its way to an answer. It is for people, and for counting tool calls; never for scoring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from fairtrial.core.experiment import ToolUse

_MOST_RESULT = 20_000


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool; `server` is None for a tool of the agent's own."""

    tool: str
    server: str | None = None
    arguments: Any = None
    result: str = ""
    error: bool = False
    unfinished: bool = False  # it was given up before it answered
    duration_ms: float | None = None

    @property
    def name(self) -> str:
        """As people read it."""
        return f"{self.server or 'built-in'}.{self.tool}"


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's steps, as they are stored with the answer."""

    tool_calls: tuple[ToolCall, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    servers: dict[str, str] = {}  # how each server was found when the agent began
    turns: int | None = None
    session_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it; tool calls are there even if there were none, which is something to know."""
        return {"tool_calls": [], "servers": {}, **msgspec.to_builtins(self)}


def waiting_for(calls: Iterable[ToolCall]) -> str:
    """What an agent that is given up was waiting for."""
    names = [call.name for call in calls if call.unfinished]
    return f"it was waiting for {', '.join(names)}" if names else "it was waiting for the model"


def short(text: str) -> str:
    """A tool's result as it is kept: a flood is cut."""
    if len(text) <= _MOST_RESULT:
        return text
    # Cut between words: half of a value that should be hidden could not be recognised.
    head = text[:_MOST_RESULT]
    return f"{head[: max(head.rfind(' '), head.rfind(chr(10)), 0) or _MOST_RESULT]} … ({len(text)} characters)"


def tool_use(trace: Mapping[str, Any] | None, servers: Collection[str]) -> ToolUse | None:
    """The calls in a trace that went to these servers; None where a target tells nothing of tools."""
    calls = (trace or {}).get("tool_calls")
    if not isinstance(calls, list | tuple):
        return None
    counts: dict[str, tuple[int, int]] = {}
    for call in calls:
        if isinstance(call, Mapping) and call.get("server") in servers:
            name = f"{call['server']}.{call.get('tool')}"
            made, failed = counts.get(name, (0, 0))
            counts[name] = (made + 1, failed + bool(call.get("error")))
    return ToolUse(tools=counts)
