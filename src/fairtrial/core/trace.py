"""The trace of an agent's steps: for reading, for counting tool calls, and for scorers such as `tool_calls`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from fairtrial.core.experiment import ToolUse

_MAX_RESULT = 20_000


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call; `server` is None for the agent's own tools."""

    tool: str
    server: str | None = None
    arguments: Any = None
    result: str = ""
    error: bool = False
    unfinished: bool = False  # abandoned before it returned
    duration_ms: float | None = None

    @property
    def name(self) -> str:
        """The name for display."""
        return f"{self.server or 'built-in'}.{self.tool}"


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's steps, stored with its answer."""

    tool_calls: tuple[ToolCall, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    servers: dict[str, str] = {}  # the state of each server when the agent started
    turns: int | None = None
    session_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the trace as JSON data; `tool_calls` is included even if empty, because that is information too."""
        return {"tool_calls": [], "servers": {}, **msgspec.to_builtins(self)}


def waiting_for(calls: Iterable[ToolCall]) -> str:
    """Say what an abandoned agent was waiting for."""
    names = [call.name for call in calls if call.unfinished]
    return f"it was waiting for {', '.join(names)}" if names else "it was waiting for the model"


def short(text: str) -> str:
    """Shorten a tool's result for storage if it is very long."""
    if len(text) <= _MAX_RESULT:
        return text
    # Cut between words: half a secret could not be recognised and hidden.
    head = text[:_MAX_RESULT]
    return f"{head[: max(head.rfind(' '), head.rfind(chr(10)), 0) or _MAX_RESULT]} … ({len(text)} characters)"


def tool_use(trace: Mapping[str, Any] | None, servers: Collection[str]) -> ToolUse | None:
    """Count the calls in a trace that went to these servers; None if the target does not report tool calls."""
    calls = (trace or {}).get("tool_calls")
    if not isinstance(calls, list | tuple):
        return None
    counts: dict[str, tuple[int, int]] = {}
    for call in calls:
        if isinstance(call, Mapping) and call.get("server") in servers:
            name = f"{call['server']}.{call.get('tool')}"
            calls_made, errors = counts.get(name, (0, 0))
            counts[name] = (calls_made + 1, errors + bool(call.get("error")))
    return ToolUse(tools=counts)
