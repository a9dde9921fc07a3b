"""What the doubles of one trial noted: where results came from, what was not recorded, what is to be recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.doubles.cassette import Exchange
from fairtrial.agents.doubles.matching import without_places
from fairtrial.core.answer import Answer, Failure
from fairtrial.core.events import CallEvent, Event, ResultEvent, Source, as_data
from fairtrial.core.trace import ToolCall, call_events, events_of, short, tells_calls, with_views, without_views

DOUBLES = "doubles"  # the name under which a trace tells of them
_OF_TOOLS = {"read_resource": "resource", "get_prompt": "prompt"}  # as `tool-agent` calls them


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One call that a double answered or passed on."""

    kind: str  # tool, resource or prompt
    name: str
    arguments: Any = None
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET
    source: Source = "mock"
    unknown: int | msgspec.UnsetType = msgspec.UNSET  # of a call that was not recorded: how many such there were
    ruled: bool = False
    earlier: bool = False  # made in a session that has ended, so that only its arguments are known
    at: float = 0.0

    @property
    def text(self) -> str:
        """What was returned, as text."""
        if self.error is not msgspec.UNSET:
            return str(self.error.get("message") if isinstance(self.error, dict) else self.error)
        content = self.result.get("content") if isinstance(self.result, dict) else None
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        return "\n".join(str(block.get("text") or f"[{block.get('type')}]") for block in blocks)

    @property
    def failed(self) -> bool:
        """Whether the call came back as an error."""
        return self.error is not msgspec.UNSET or bool(isinstance(self.result, dict) and self.result.get("isError"))


def read_notes(file: Path) -> list[Note]:
    """Return the notes of a trial about one server; the last line may not be whole yet."""
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    return [msgspec.convert(json.loads(line), Note) for line in lines]


def exchanges(notes: Iterable[Note], folders: Sequence[str]) -> list[Exchange]:
    """Return what came from the server itself, without the path of the trial's folder."""
    found = []
    for note in notes:
        reply = {"result": note.result} if note.error is msgspec.UNSET else {"error": note.error}
        whole = note.result is msgspec.UNSET or _is_whole(note.result)
        if note.source == "live" and not note.earlier and whole:
            data = without_places([note.name, note.arguments, reply], folders)
            found.append(Exchange(kind=note.kind, name=data[0], arguments=data[1], reply=data[2]))
    return found


def _is_whole(result: Any) -> bool:
    """Return whether a result is all that there is to it; servers can ask their client for more first."""
    return not isinstance(result, dict) or result.get("resultType", "complete") == "complete"


def earlier_notes(traces: Iterable[Mapping[str, Any] | None], server: str) -> list[Note]:
    """Return the calls of a server in turns of an earlier session."""
    calls = [event for trace in traces for event in events_of(trace) or () if isinstance(event, CallEvent)]
    return [
        Note(kind="tool", name=call.tool, arguments=call.arguments, earlier=True)
        for call in calls
        if call.server == server
    ]


# -- in the trace --------------------------------------------------------------------------------


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace tells of the double of one server."""

    plays: bool  # a recording or a mock, and not only records
    recorded: int = 0  # calls by where their results came from
    mock: int = 0
    live: int = 0
    unknown: list[str] = []  # calls that was not recorded, in words


def told_in(trace: Mapping[str, Any] | None) -> dict[str, Told]:
    """Return what a trace tells of doubles, by server; a target of a user may mean something else by the word."""
    try:
        return msgspec.convert((trace or {}).get(DOUBLES) or {}, dict[str, Told])
    except msgspec.ValidationError:
        return {}


def unknown_calls(trace: Mapping[str, Any] | None) -> list[str]:
    """Return, in words, the calls of a trial that were not recorded."""
    return [words for told in told_in(trace).values() for words in told.unknown]


def with_sources(
    result: Answer | Failure, notes: Mapping[str, list[Note]], told: Mapping[str, Told]
) -> Answer | Failure:
    """Return a result whose trace says where the results of calls came from, and what the doubles have `told`."""
    trace = result.trace
    if trace is not None and tells_calls(trace):
        events = list(_with_sources(events_of(trace) or (), notes))
    else:
        events = [*(events_of(trace) or ()), *_events_of(notes)]
    own = {**(without_views(trace) or {}), DOUBLES: msgspec.to_builtins(told)}
    if events:
        own = with_views({**own, "events": as_data(events)}) or own
    return msgspec.structs.replace(result, trace=own)


def _events_of(notes: Mapping[str, list[Note]]) -> Iterator[Event]:
    """Yield calls of which the target itself tells nothing."""
    for server, own in notes.items():
        calls = [
            ToolCall(
                tool=note.name, server=server, arguments=note.arguments, result=short(note.text), error=note.failed
            )
            for note in own
        ]
        yield from _with_sources(call_events(calls, f"{server}-"), {server: own})


def _with_sources(events: Iterable[Event], notes: Mapping[str, list[Note]]) -> Iterator[Event]:
    left = {server: list(own) for server, own in notes.items()}
    events = list(events)
    sources = {}
    for exact in (True, False):  # those that are certain first: agents call several tools at a time
        for event in events:
            if isinstance(event, CallEvent) and event.id not in sources and event.server in left:
                note = next((note for note in left[event.server] if _is_of(note, event, exact)), None)
                if note is not None:
                    left[event.server].remove(note)
                    sources[event.id] = note.source
    for event in events:
        if isinstance(event, ResultEvent) and event.call in sources:
            yield msgspec.structs.replace(event, source=sources[event.call])
        else:
            yield event


def _is_of(note: Note, call: CallEvent, exact: bool) -> bool:
    if note.kind != "tool":
        return not exact and _OF_TOOLS.get(call.tool) == note.kind
    alike = _plain(note.name) == _plain(call.tool)
    return alike and (not exact or note.arguments == (call.arguments or {}))


def _plain(name: str) -> str:
    """Return the name of a tool as agents write it, who replace what their models do not take."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)
