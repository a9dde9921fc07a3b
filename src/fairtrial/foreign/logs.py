"""Sessions of agents that other programs logged, and what a format of such logs is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.events import Event, MessageEvent
from fairtrial.foreign.source import Source


class LoggedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session of an agent as its log tells it; `foreign/chronicle.py` makes one of a log's lines."""

    id: str
    agent: str  # `claude-code`, `codex`, …
    events: tuple[Event, ...] = ()
    version: str = ""  # of the agent
    model: str = ""
    system: str = ""  # the system prompt, where the log has it as one
    folder: str = ""  # in which the agent worked
    branch: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    worked_ms: float | None = None  # without the time in which it waited for its user
    usage: Usage | None = None
    cost_usd: float | None = None
    finish_reason: str | None = None
    failure: Failure | None = None  # there is no valid outcome
    case: str = ""  # the id of its task, where the log names one
    arm: str = ""  # where the log names it
    repeat: int | None = None  # where the log counts them, from 0
    scores: dict[str, float] = {}
    notes: dict[str, str] = {}  # reasons for scores, by name
    metadata: dict[str, Any] = {}  # of its task
    unknown: Mapping[str, int] = {}  # what the reader did not understand, and how often it came
    stopped: str = ""  # why reading ended before the end of the log

    @property
    def said(self) -> list[str]:
        """What the user said, in order."""
        return [
            event.text
            for event in self.events
            if isinstance(event, MessageEvent) and event.role == "user" and not event.within
        ]

    @property
    def answer(self) -> str | None:
        """What the agent said last."""
        told = (
            event.text
            for event in reversed(self.events)
            if isinstance(event, MessageEvent) and event.role == "assistant" and not event.within
        )
        return next(told, None)


class LogFormat(Protocol):
    """Reads the logs of one agent or tool; a module can be one."""

    def recognises(self, source: Source) -> bool:
        """Return whether a file is such a log, judged by its content."""

    def sessions(self, source: Source) -> Iterator[LoggedSession]:
        """Yield the sessions in a file; what is not understood is counted in `unknown`, and never ends the reading."""

    def companions(self, source: Source) -> Iterable[Path]:
        """Return the other files that are read with a file, such as those of its subagents."""
