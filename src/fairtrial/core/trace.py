"""The trace of an answer: the ordered list of what happened (`core/events.py`), and what is read off it.

In memory a trace is a mapping with `events`, and with `tool_calls` and `messages`, which follow from them; the store
has the events alone. Functions and programs of users, and runs that are older than the list, have only `tool_calls` and
`messages`: `events_of` makes a list of these, as far as they go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    Event,
    LimitEvent,
    LimitKind,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
    as_data,
    read_events,
)
from fairtrial.core.experiment import ToolUse

_MAX_RESULT = 20_000
END = "end"  # the kind of note that says why a conversation ended
_VIEWS = ("tool_calls", "messages")  # they follow from the events


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call; `server` is None for the agent's own tools."""

    tool: str
    server: str | None = None
    arguments: Any = None
    result: str = ""
    error: bool = False
    unfinished: bool = False  # abandoned before it returned
    rejected: bool = False  # not carried out, because it was not allowed; also an error
    duration_ms: float | None = None
    turn: int = 1  # of the conversation

    @property
    def name(self) -> str:
        """The name for display."""
        return f"{self.server or 'built-in'}.{self.tool}"


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent did, stored with its answer: `events`, or only its calls and messages."""

    tool_calls: tuple[ToolCall, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    events: tuple[Event, ...] = ()
    servers: dict[str, str] = {}  # the state of each server when the agent started
    turns: int | None = None  # how often its model was asked
    session_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the trace as JSON data; `tool_calls` is included even if empty, because that is information too."""
        data = {"tool_calls": [], "servers": {}, **msgspec.to_builtins(self)}
        if not self.events or self.tool_calls or self.messages:
            return data
        return with_views({**data, "events": as_data(self.events)}) or data


# -- what follows from the events ----------------------------------------------------------------


def with_views(trace: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a trace with `tool_calls` and `messages`, if it has events; where some turn tells none, without calls."""
    events = _stored_events(trace)
    if trace is None or events is None:
        return trace
    calls = {} if trace.get("not_told") else {"tool_calls": msgspec.to_builtins(list(tool_calls(events)))}
    rest = {name: value for name, value in trace.items() if name not in _VIEWS}
    return {**calls, "messages": _messages(events), **rest}


def without_views(trace: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a trace as it is stored: without what follows from its events."""
    if _stored_events(trace) is None:
        return trace
    return {name: value for name, value in (trace or {}).items() if name not in _VIEWS}


def tool_calls(events: Iterable[Event]) -> tuple[ToolCall, ...]:
    """Return the calls of a list in the order in which they began."""
    calls: dict[str, ToolCall] = {}
    for event in events:
        if isinstance(event, CallEvent):
            calls[event.id] = ToolCall(
                tool=event.tool, server=event.server, arguments=event.arguments, unfinished=True, turn=event.turn
            )
        elif isinstance(event, ResultEvent) and event.call in calls:
            calls[event.call] = msgspec.structs.replace(
                calls[event.call],
                result=event.text,
                error=event.error or event.rejected,
                rejected=event.rejected,
                unfinished=False,
                duration_ms=event.ms,
            )
    return tuple(calls.values())


def _messages(events: Iterable[Event]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in events:
        if isinstance(event, ReasoningEvent):
            found.append({"role": "assistant", "thinking": event.text})
        elif isinstance(event, MessageEvent) and event.role != "user":
            found.append({"role": event.role, "text": event.text})
    return found


# -- the list of a trace -------------------------------------------------------------------------


def events_of(trace: Mapping[str, Any] | None, turn: int = 1) -> tuple[Event, ...] | None:
    """Return the events of a trace; one without has them made of its calls and messages; None if it tells neither.

    The order between calls and messages is not known then: the calls come before the last message.
    """
    events = _stored_events(trace)
    if events is not None:
        return events
    told = [name for name in _VIEWS if isinstance((trace or {}).get(name), list | tuple)]
    if not told:
        return None
    assert trace is not None
    messages = list(_message_events(trace.get("messages") or (), turn))
    return (*messages[:-1], *call_events(_calls_in(trace.get("tool_calls") or ()), f"{turn}.", turn), *messages[-1:])


def tells_calls(trace: Mapping[str, Any] | None) -> bool:
    """Return whether a trace says which tools were called."""
    return isinstance((trace or {}).get("tool_calls"), list | tuple)


def _stored_events(trace: Mapping[str, Any] | None) -> tuple[Event, ...] | None:
    found = (trace or {}).get("events")
    if not isinstance(found, list | tuple) or not found:
        return None
    try:
        return read_events(found)
    except msgspec.ValidationError:  # a mapping of a user's own program, in which the word means something else
        return None


def _message_events(messages: Iterable[Any], turn: int) -> Iterator[Event]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        text, thinking = message.get("text", message.get("content")), message.get("thinking")
        if isinstance(thinking, str):
            yield ReasoningEvent(text=thinking, turn=turn)
        elif isinstance(text, str):
            role = message.get("role")
            yield MessageEvent(text=text, role=role if role in ("user", "system") else "assistant", turn=turn)


def _calls_in(entries: Iterable[Any]) -> Iterator[ToolCall]:
    """Yield the calls that the programs of users report, who may put anything there."""
    for entry in entries:
        if isinstance(entry, Mapping) and isinstance(entry.get("tool"), str):
            text, server, ms = entry.get("result"), entry.get("server"), entry.get("duration_ms")
            yield ToolCall(
                tool=entry["tool"],
                server=server if isinstance(server, str) else None,
                arguments=entry.get("arguments"),
                result=text if isinstance(text, str) else "" if text is None else repr(text),
                error=bool(entry.get("error")),
                unfinished=bool(entry.get("unfinished")),
                rejected=bool(entry.get("rejected")),
                duration_ms=float(ms) if isinstance(ms, int | float) else None,
            )


def call_events(calls: Iterable[ToolCall], prefix: str, turn: int = 1) -> Iterator[Event]:
    """Yield calls with their results as events; their ids begin with a prefix."""
    for number, call in enumerate(calls, start=1):
        name = f"{prefix}{number}"
        yield CallEvent(id=name, tool=call.tool, server=call.server, arguments=call.arguments, turn=turn)
        if not call.unfinished:
            yield ResultEvent(
                call=name, text=call.result, error=call.error, rejected=call.rejected, ms=call.duration_ms, turn=turn
            )


# -- conversations -------------------------------------------------------------------------------


def join_turns(traces: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the trace of a whole conversation: the events of all turns in their order, and the state of the last one.

    `not_told` has the turns whose targets did not say which tools they used.
    """
    if len(traces) == 1 or not any(events_of(trace) is not None for trace in traces):
        return dict(traces[-1]) if traces and traces[-1] is not None else None
    events: list[Event] = []
    seen: Counter[str] = Counter()
    for turn, trace in enumerate(traces, start=1):
        events += _renamed(events_of(trace) or (), turn, seen)
    not_told = [turn for turn, trace in enumerate(traces, start=1) if not tells_calls(trace)]
    asked = [(trace or {}).get("turns") for trace in traces]
    joined: dict[str, Any] = {**(traces[-1] or {}), "events": as_data(events)}
    joined.pop("not_told", None)
    if not_told:
        joined["not_told"] = not_told
    if any(isinstance(count, int) for count in asked):
        joined["turns"] = sum(count for count in asked if isinstance(count, int))
    return with_views(joined)


def whole_trace(trace: dict[str, Any] | None, earlier: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the trace of a conversation as it is stored: old runs have one per turn, in the rows of these."""
    if not earlier or "events" in (trace or {}):
        return with_views(trace)
    return join_turns([*earlier, trace])


def trace_of_turn(trace: Mapping[str, Any] | None, turn: int) -> dict[str, Any] | None:
    """Return what the trace of a conversation says about one of its turns, as if it were the only one."""
    events = _stored_events(trace)
    if trace is None or events is None:
        return None
    kept = {name: value for name, value in trace.items() if name in ("servers", "session_id")}
    own = [msgspec.structs.replace(event, turn=1) for event in events if event.turn == turn]
    told = turn not in (trace.get("not_told") or ())
    calls = {"tool_calls": msgspec.to_builtins(tool_calls(own))} if told else {"not_told": [1]}
    return {**kept, **calls, "messages": _messages(own), "events": as_data(own)}


def with_note(trace: Mapping[str, Any] | None, text: str, *, kind: str) -> dict[str, Any]:
    """Return the trace of one turn with a note at its end; what it did not tell before is still unknown."""
    events = events_of(trace) or ()
    unknown = {} if tells_calls(trace) else {"not_told": [1]}
    return {**(trace or {}), **unknown, "events": as_data([*events, NoteEvent(text=text, kind=kind)])}


def ending(trace: Mapping[str, Any] | None) -> str:
    """Return why a conversation ended, if that was recorded."""
    notes = (event for event in _stored_events(trace) or () if isinstance(event, NoteEvent) and event.kind == END)
    return next((note.text for note in notes), "")


def _renamed(events: Sequence[Event], turn: int, seen: Counter[str]) -> list[Event]:
    """Return the events of one turn, with its number, and with ids of calls that no earlier turn has."""
    ids = {event.id: event.id for event in events if isinstance(event, CallEvent)}
    names = {name: f"{name}#{turn}" if seen[name] else name for name in ids}
    seen.update(names.values())
    found = []
    for event in events:
        changes: dict[str, Any] = {"turn": turn}
        if event.within:
            changes["within"] = names.get(event.within, event.within)
        if isinstance(event, CallEvent):
            changes["id"] = names[event.id]
        elif isinstance(event, ResultEvent):
            changes["call"] = names.get(event.call, event.call)
        found.append(msgspec.structs.replace(event, **changes))
    return found


def with_changes(trace: Mapping[str, Any] | None, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace that says what was changed in the workspace, also as events."""
    result = {**(trace or {}), "workspace": shown}
    events = _stored_events(trace)
    if events is None:
        return result
    changes = [
        ChangeEvent(path=str(path), how=how)
        for how in ("added", "modified", "removed")
        for path in shown.get(how) or ()
    ]
    return {**result, "events": as_data([*events, *changes])}


def with_limit(trace: Mapping[str, Any] | None, kind: LimitKind, value: float | None, note: str = "") -> dict[str, Any]:
    """Return a trace whose events say that a limit ended the work, with a note on what was going on then."""
    told = events_of(trace) or ()
    if any(isinstance(event, LimitEvent) for event in told):
        return dict(trace or {})
    notes = [NoteEvent(text=note)] if note else []
    # Nothing is known of the calls of one that told nothing, which is not the same as none.
    unknown = {} if tells_calls(trace) else {"not_told": [1]}
    events = as_data([*told, *notes, LimitEvent(kind=kind, limit=value)])
    return with_views({**(trace or {}), **unknown, "events": events}) or {}


# -- of calls --------------------------------------------------------------------------------------


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
