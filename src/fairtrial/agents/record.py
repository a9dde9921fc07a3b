"""The record of one session with an agent, made from its events as they come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from fairtrial.agents.notes import ServerNotes
from fairtrial.core.answer import Answer, Failure, SoFar, Usage
from fairtrial.core.events import (
    CallEvent,
    Event,
    LimitEvent,
    LimitKind,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
    Source,
)
from fairtrial.core.trace import Trace, call_events, short, tool_calls, waiting_for

CONNECTED, NOT_CONNECTED, UNKNOWN = "connected", "not connected", "not observed"


class RecordPlace(NamedTuple):
    """A place in a record: after this many messages of the agent, and this many calls since the last of these."""

    messages: int
    calls: int


class Record:
    """What an agent has said and done so far; a session that is given up keeps it up to its last event."""

    def __init__(self, servers: Sequence[str], notes: ServerNotes | None = None) -> None:
        self.wanted = tuple(servers)
        self.servers: dict[str, str] = {}  # the state of each server when the agent started
        self.turns: int | None = None
        self.model: str | None = None
        self.session_id: str | None = None
        self.usage: Usage | None = None  # of the whole session, as far as reported
        self.uncounted = False  # whether more was used than is told
        self.cost_usd: float | None = None
        self.ending: str | None = None  # how the agent says that it ended, in its own words
        self.limit: tuple[LimitKind, float | None] | None = None  # which ended its work
        self._notes = notes
        self._started = time.perf_counter()
        self._first: float | None = None
        self._in_pieces = False
        self._events: list[Event] = []
        self._called_at: dict[str, float] = {}
        self._within: dict[str, str] = {}
        self._returned: set[str] = set()
        self._agents: dict[str, str] = {}  # subagents, by the call that started them

    def begin(self) -> None:
        """Note that the agent and its servers are ready: starting them does not count as latency."""
        self._started = time.perf_counter()

    def say(self, text: str, *, within: str = "") -> None:
        """Record a message of the agent; `within` is the call that started the subagent which says it."""
        self._add(MessageEvent(text=text, model=self.model, **self._place(within)))

    def say_more(self, text: str) -> None:
        """Record the next piece of a message that comes in pieces."""
        last = self._events[-1] if self._events else None
        if self._in_pieces and isinstance(last, MessageEvent):
            self._events[-1] = msgspec.structs.replace(last, text=last.text + text)
        else:
            self.say(text)
            self._in_pieces = True

    def think(self, text: str, *, within: str = "") -> None:
        """Record the model's reasoning."""
        self._add(ReasoningEvent(text=text, **self._place(within)))

    def note(self, text: str) -> None:
        """Record anything else that is worth knowing."""
        self._add(NoteEvent(text=text, **self._place()))

    def stopped(self, kind: LimitKind, limit: float | None = None) -> None:
        """Record that the agent reached a limit, which ended its work."""
        self.limit = (kind, limit)
        self._add(LimitEvent(kind=kind, limit=limit, **self._place()))

    def call(self, name: str, tool: str, server: str | None, arguments: Any, *, within: str = "") -> None:
        """Record that a tool is called; `name` tells this call from others."""
        if name in self._called_at:
            self._add()
            return
        self._add(CallEvent(id=name, tool=tool, server=server, arguments=arguments, **self._place(within)))
        self._called_at[name], self._within[name] = time.perf_counter(), within

    def returned(
        self,
        name: str,
        result: str,
        *,
        error: bool = False,
        rejected: bool = False,
        duration_ms: float | None = None,
        source: Source = "live",
    ) -> None:
        """Record what a call returned, or that it was `rejected`: not carried out, because it is not allowed."""
        if name not in self._called_at or name in self._returned:
            return
        self._returned.add(name)
        measured = (time.perf_counter() - self._called_at[name]) * 1000
        self._events.append(
            ResultEvent(
                call=name,
                text=short(result),
                error=error or rejected,
                rejected=rejected,
                ms=round(measured if duration_ms is None else duration_ms, 3),
                source=source,
                **self._place(self._within[name]),
            )
        )

    def reject(self, name: str) -> None:
        """Record that a call which has returned was not carried out, because it is not allowed."""
        for place, event in enumerate(self._events):
            if isinstance(event, ResultEvent) and event.call == name:
                self._events[place] = msgspec.structs.replace(event, error=True, rejected=True)

    def insert(self, place: RecordPlace, *events: Event) -> None:
        """Record what the agent did not report when it happened, at the place where it did."""
        at = self._index_of(place)
        before = self._events[at - 1].at if at else None
        self._events[at:at] = [msgspec.structs.replace(event, at=before) for event in events]

    def _index_of(self, place: RecordPlace) -> int:
        """Return the index of a place; if calls are missing there, that of the end of what comes before it."""
        messages, calls, index = place.messages, place.calls, 0
        for number, event in enumerate(self._events, start=1):
            if isinstance(event, MessageEvent) and not event.within:
                if not messages:
                    break
                messages, index = messages - 1, number
            elif messages:
                continue
            elif isinstance(event, CallEvent):
                if not calls:
                    break
                calls, index = calls - 1, number
            elif index == number - 1:  # results and notes follow what they are about
                index = number
        return index

    def _add(self, *events: Event) -> None:
        self._first = self._first or time.perf_counter()
        self._in_pieces = False
        self._events += events

    def _place(self, within: str = "") -> dict[str, Any]:
        """Return when something happens, and in whose work."""
        at = round(max(0.0, time.perf_counter() - self._started), 3)
        return {"at": at, "within": within, "agent": self._agents.get(within, "")}

    def delegate(self, name: str, agent: str) -> None:
        """Record that a call starts a subagent."""
        self._agents[name] = agent

    def used(self, usage: Usage) -> None:
        """Add the tokens of one reply of the model."""
        self.usage = usage if self.usage is None else self.usage + usage

    @property
    def steps(self) -> int:
        """How often tools were called."""
        return len(self._called_at)

    @property
    def rounds(self) -> int:
        """How often the model called tools; calls that are under way at the same time count as one."""
        rounds = 0
        under_way: set[str] = set()
        for event in self._events:
            if isinstance(event, CallEvent) and not event.within:
                rounds += not under_way
                under_way.add(event.id)
            elif isinstance(event, ResultEvent):
                under_way.discard(event.call)
        return rounds

    @property
    def waits(self) -> bool:
        """Whether a call is under way."""
        return len(self._returned) < len(self._called_at)

    @property
    def last_text(self) -> str:
        """The agent's last message."""
        said = (event.text for event in reversed(self._events) if isinstance(event, MessageEvent) and not event.within)
        return next(said, "")

    def has_used(self, server: str) -> bool:
        """Return whether a call to a server has succeeded."""
        return any(call.server == server and not (call.error or call.unfinished) for call in tool_calls(self._events))

    def events(self) -> list[Event]:
        """Return what has happened so far, with calls that reached a server and that the agent has not reported."""
        if self._notes is None:
            return list(self._events)
        unreported = self._notes.unreported(tool_calls(self._events))
        return [*self._events, *call_events(unreported, "server-")]

    def unconnected(self) -> str | None:
        """Return the name of a server that the agent never asked for its tools; None if there is none."""
        if self._notes is not None:
            words = {True: CONNECTED, False: NOT_CONNECTED, None: UNKNOWN}
            self.servers = {name: words[self._notes.listed(name)] for name in self.wanted}
        return next((name for name in self.wanted if self.servers.get(name) == NOT_CONNECTED), None)

    def trace(self) -> dict[str, Any]:
        """Return the trace so far."""
        return Trace(
            events=tuple(self.events()), servers=self.servers, turns=self.turns, session_id=self.session_id
        ).as_dict()

    def so_far(self) -> SoFar:
        """Return what is known about a session that has not ended."""
        unconnected = self.unconnected()
        return SoFar(
            doing=waiting_for(tool_calls(self.events())),
            usage=self.usage,
            trace=self.trace(),
            text=self.last_text,
            ready=unconnected is None,
        )

    def unfinished(self) -> Answer:
        """Return what an agent came to that reached a limit: what it said last."""
        return self.answer(self.last_text, None)

    def answer(self, text: str, finish_reason: str | None = "stop") -> Answer:
        """Return the agent's answer with the record of the session."""
        limit, value = self.limit or (None, None)
        return Answer(
            limit=limit,
            limit_value=value,
            text=text,
            finish_reason=finish_reason,
            usage=None if self.uncounted else self.usage,
            model=self.model,
            latency_ms=(time.perf_counter() - self._started) * 1000,
            first_token_ms=(self._first - self._started) * 1000 if self._first else None,
            reasoning="\n".join(e.text for e in self._events if isinstance(e, ReasoningEvent) and not e.within) or None,
            trace=self.trace(),
            cost_usd=self.cost_usd,
        )

    def failure(self, kind: str, message: str, *, retryable: bool = False) -> Failure:
        """Return a failure that keeps what was done and spent."""
        return Failure(
            kind=kind,
            message=message,
            retryable=retryable,
            usage=self.usage,
            cost_usd=self.cost_usd,
            maybe_billed=self.usage is None and self._first is not None,  # the model has replied, at some cost
            given_up=self.uncounted,
            trace=self.trace(),
        )
