"""The record of one session with an agent, made from its events as they come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.agents.notes import ServerNotes
from fairtrial.core.answer import Answer, Failure, SoFar, Usage
from fairtrial.core.trace import ToolCall, Trace, short, waiting_for

CONNECTED, NOT_CONNECTED, UNKNOWN = "connected", "not connected", "not observed"


class Record:
    """What an agent has said and done so far; a session that is given up keeps it up to its last event."""

    def __init__(self, servers: Sequence[str], notes: ServerNotes | None = None) -> None:
        self.wanted = tuple(servers)
        self.servers: dict[str, str] = {}  # the state of each server when the agent started
        self.turns: int | None = None
        self.model: str | None = None
        self.session_id: str | None = None
        self.usage: Usage | None = None  # of the whole session, as far as reported
        self.cost_usd: float | None = None
        self.ending: str | None = None  # how the agent says that it ended, in its own words
        self._notes = notes
        self._started = time.perf_counter()
        self._first: float | None = None
        self._in_pieces = False
        self._messages: list[dict[str, Any]] = []
        self._calls: dict[str, ToolCall] = {}
        self._called_at: dict[str, float] = {}

    def begin(self) -> None:
        """Note that the agent and its servers are ready: starting them does not count as latency."""
        self._started = time.perf_counter()

    def say(self, text: str) -> None:
        """Record a message of the agent."""
        self._add({"role": "assistant", "text": text})

    def say_more(self, text: str) -> None:
        """Record the next piece of a message that comes in pieces."""
        if self._in_pieces:
            self._messages[-1]["text"] += text
        else:
            self.say(text)
            self._in_pieces = True

    def think(self, text: str) -> None:
        """Record the model's reasoning."""
        self._add({"role": "assistant", "thinking": text})

    def _add(self, *messages: dict[str, Any]) -> None:
        self._first = self._first or time.perf_counter()
        self._in_pieces = False
        self._messages += messages

    def call(self, name: str, tool: str, server: str | None, arguments: Any) -> None:
        """Record that a tool is called; `name` tells this call from others."""
        self._add()
        self._calls.setdefault(name, ToolCall(tool=tool, server=server, arguments=arguments, unfinished=True))
        self._called_at.setdefault(name, time.perf_counter())

    def returned(self, name: str, result: str, *, error: bool = False, duration_ms: float | None = None) -> None:
        """Record what a call returned."""
        if name not in self._calls:
            return
        measured = (time.perf_counter() - self._called_at[name]) * 1000
        self._calls[name] = msgspec.structs.replace(
            self._calls[name],
            result=short(result),
            error=error,
            unfinished=False,
            duration_ms=measured if duration_ms is None else duration_ms,
        )

    def used(self, usage: Usage) -> None:
        """Add the tokens of one reply of the model."""
        self.usage = usage if self.usage is None else self.usage + usage

    @property
    def steps(self) -> int:
        """How often tools were called."""
        return len(self._calls)

    @property
    def last_text(self) -> str:
        """The agent's last message."""
        return next((message["text"] for message in reversed(self._messages) if "text" in message), "")

    def has_used(self, server: str) -> bool:
        """Return whether a call to a server has succeeded."""
        return any(call.server == server and not call.error and not call.unfinished for call in self._calls.values())

    def calls(self) -> tuple[ToolCall, ...]:
        """Return all calls, also those that reached a server and that the agent has not reported."""
        reported = tuple(self._calls.values())
        return reported + (self._notes.unreported(reported) if self._notes else ())

    def unconnected(self) -> str | None:
        """Return the name of a server that the agent never asked for its tools; None if there is none."""
        if self._notes is not None:
            words = {True: CONNECTED, False: NOT_CONNECTED, None: UNKNOWN}
            self.servers = {name: words[self._notes.listed(name)] for name in self.wanted}
        return next((name for name in self.wanted if self.servers.get(name) == NOT_CONNECTED), None)

    def trace(self) -> dict[str, Any]:
        """Return the trace so far."""
        return Trace(
            tool_calls=self.calls(),
            messages=tuple(dict(message) for message in self._messages),
            servers=self.servers,
            turns=self.turns,
            session_id=self.session_id,
        ).as_dict()

    def so_far(self) -> SoFar:
        """Return what is known about a session that has not ended."""
        return SoFar(doing=waiting_for(self.calls()), usage=self.usage, trace=self.trace())

    def answer(self, text: str, finish_reason: str | None = "stop") -> Answer:
        """Return the agent's answer with the record of the session."""
        return Answer(
            text=text,
            finish_reason=finish_reason,
            usage=self.usage,
            model=self.model,
            latency_ms=(time.perf_counter() - self._started) * 1000,
            first_token_ms=(self._first - self._started) * 1000 if self._first else None,
            reasoning="\n".join(m["thinking"] for m in self._messages if "thinking" in m) or None,
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
            trace=self.trace(),
        )
