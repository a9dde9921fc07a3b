"""A session put together from the lines of a log, in their order: each message, call and result once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, get_args

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    ChangeKind,
    ErrorEvent,
    Event,
    LimitEvent,
    LimitKind,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
)
from fairtrial.core.secrets import is_credential, without_keys
from fairtrial.core.trace import short
from fairtrial.foreign.logs import LoggedSession

_HIDDEN = "[key hidden]"
_MAX_DEPTH = 20
_HOWS = frozenset(get_args(ChangeKind))


class Chronicle:
    """What a log tells of one session, so far. Times (`at`) are seconds since 1970; keys in texts are hidden.

    `within` is the call that started the subagent which does something. A call or the usage of a reply that comes
    again is there once: logs repeat what came before when a session goes on.
    """

    def __init__(self, agent: str) -> None:
        self.agent, self.id, self.version, self.model, self.system = agent, "", "", "", ""
        self.folder, self.branch, self.stopped = "", "", ""
        self.finish_reason: str | None = None
        self.usage: Usage | None = None  # of the whole session, where the log has a sum
        self.cost_usd: float | None = None
        self.failure: Failure | None = None
        self.unknown: Counter[str] = Counter()
        self.more: dict[str, Any] = {}  # other fields of the session
        self._events: list[Event] = []
        self._calls: dict[str, float | None] = {}  # when each began
        self._within: dict[str, str] = {}
        self._returned: set[str] = set()
        self._agents: dict[str, str] = {}
        self._used: dict[str, Usage] = {}
        self._turn, self._began, self._last = 0, None, None  # type: int, float | None, float | None
        self._started: float | None = None
        self._worked = 0.0

    # -- what happened ---------------------------------------------------------------------------

    def ask(self, text: str, at: float | None = None, *, within: str = "") -> None:
        """Tell what the user says, which begins a turn; within a subagent, what it has to do."""
        if not text.strip():
            return
        if not within:
            self._end_turn()
            self._turn += 1
            self._began = self._last = at
        self._add(MessageEvent(text=_clean(text), role="user", **self._place(at, within)))

    def instruct(self, text: str, at: float | None = None, *, within: str = "") -> None:
        """Tell what the system says to the agent."""
        if text.strip():
            self._add(MessageEvent(text=_clean(text), role="system", **self._place(at, within)))

    def say(self, text: str, at: float | None = None, *, model: str | None = None, within: str = "") -> None:
        """Tell what the agent says."""
        if text.strip():
            self._add(MessageEvent(text=_clean(text), model=model or None, **self._place(at, within)))

    def think(self, text: str, at: float | None = None, *, within: str = "") -> None:
        """Tell the model's reasoning."""
        if text.strip():
            self._add(ReasoningEvent(text=_clean(text), **self._place(at, within)))

    def call(
        self,
        name: str,
        tool: str,
        arguments: Any,
        at: float | None = None,
        *,
        server: str | None = None,
        within: str = "",
    ) -> None:
        """Tell that a tool is called; `name` tells this call from others."""
        if name in self._calls:
            return
        self._calls[name], self._within[name] = at, within
        place = self._place(at, within)
        self._add(CallEvent(id=name, tool=tool, server=server, arguments=clean_value(arguments), **place))

    def returned(
        self,
        name: str,
        text: str,
        at: float | None = None,
        *,
        error: bool = False,
        rejected: bool = False,
        ms: float | None = None,
    ) -> None:
        """Tell what a call returned, or that it was `rejected`: not carried out, because it was not allowed."""
        if name not in self._calls:
            self.unknown["result of an unknown call"] += 1
            return
        if name in self._returned:
            return
        self._returned.add(name)
        began = self._calls[name]
        if ms is None and at is not None and began is not None and at >= began:
            ms = round((at - began) * 1000, 3)
        place = self._place(at, self._within[name])
        self._add(
            ResultEvent(
                call=name, text=_clean(text), error=error or rejected, rejected=rejected,
                ms=None if ms is None else round(ms, 3), **place,
            )
        )  # fmt: skip

    def changed(self, path: str, how: str, at: float | None = None, *, within: str = "") -> None:
        """Tell that a file was changed; its path is relative to the folder of the session."""
        kind: Any = how if how in _HOWS else "modified"
        self._add(ChangeEvent(path=_clean(_inside(path, self.folder)), how=kind, **self._place(at, within)))

    def note(self, text: str, at: float | None = None, *, within: str = "") -> None:
        """Tell anything else that is worth knowing."""
        self._add(NoteEvent(text=_clean(text), **self._place(at, within)))

    def fail(self, text: str, kind: str = "", at: float | None = None, *, within: str = "") -> None:
        """Tell that something went wrong which is not the result of a tool."""
        self._add(ErrorEvent(text=_clean(text), kind=kind, **self._place(at, within)))

    def stop(self, kind: LimitKind, limit: float | None = None, at: float | None = None) -> None:
        """Tell that the agent reached a limit."""
        self._add(LimitEvent(kind=kind, limit=limit, **self._place(at)))

    def add(self, event: Event) -> None:
        """Tell an event that is known as such, with its own time and turn."""
        event = _cleaned(event)
        if isinstance(event, CallEvent):
            self._calls[event.id], self._within[event.id] = None, event.within
        elif isinstance(event, ResultEvent):
            self._returned.add(event.call)
        self._turn = max(self._turn, event.turn)
        self._events.append(event)

    def delegate(self, name: str, agent: str) -> None:
        """Tell which subagent a call starts."""
        self._agents[name] = agent

    def used(self, reply: str, usage: Usage | None) -> None:
        """Tell the tokens of one reply of the model; of a reply that comes again, the last count is right."""
        if usage is not None:
            self._used[reply] = usage

    def skip(self, what: str) -> None:
        """Count what the reader does not understand."""
        self.unknown[what] += 1

    # -- what it comes to ------------------------------------------------------------------------

    @property
    def turn(self) -> int:
        """The number of the turn, from 1; 0 before the user has said anything."""
        return self._turn

    def has_call(self, name: str) -> bool:
        """Return whether a call is known."""
        return name in self._calls

    def has_returned(self, name: str) -> bool:
        """Return whether a call has come back."""
        return name in self._returned

    def session(self) -> LoggedSession | None:
        """Return the session; None if nothing happened in it."""
        if not self._events:
            return None
        self._end_turn()
        total = self.usage
        if total is None and self._used:
            first, *others = self._used.values()
            total = sum(others, first)
        told = {
            "id": self.id,
            "agent": self.agent,
            "version": self.version,
            "model": self.model,
            "system": _clean(self.system),
            "folder": self.folder,
            "branch": self.branch,
            "started_at": self._started,
            "ended_at": self._last,
            "worked_ms": round(self._worked * 1000, 3) if self._worked else None,
            "usage": total,
            "cost_usd": self.cost_usd,
            "finish_reason": self.finish_reason,
            "failure": self.failure,
            "unknown": dict(self.unknown),
            "stopped": self.stopped,
        }
        return LoggedSession(events=tuple(self._events), **{**told, **self.more})

    def _end_turn(self) -> None:
        if self._began is not None and self._last is not None:
            self._worked += max(0.0, self._last - self._began)
        self._began = None

    def _add(self, event: Event) -> None:
        self._events.append(event)

    def _place(self, at: float | None, within: str = "") -> dict[str, Any]:
        """Return when something happens, and in whose work."""
        if at is not None:
            self._started = at if self._started is None else min(self._started, at)
            self._began = at if self._began is None else self._began
            self._last = at if self._last is None else max(self._last, at)
        since = None if at is None or self._began is None else round(max(0.0, at - self._began), 3)
        return {"turn": max(self._turn, 1), "at": since, "within": within, "agent": self._agents.get(within, "")}


def _cleaned(event: Event) -> Event:
    changes: dict[str, Any] = {}
    for field in ("text", "path"):
        if isinstance(getattr(event, field, None), str):
            changes[field] = _clean(getattr(event, field))
    if isinstance(event, CallEvent):
        changes["arguments"] = clean_value(event.arguments)
    return msgspec.structs.replace(event, **changes)


def _clean(text: str) -> str:
    return without_keys(short(text), _HIDDEN)[0]


def clean_value(value: Any, depth: int = 0) -> Any:
    """Return arguments of a call without keys, and with texts of bounded length."""
    if isinstance(value, str):
        return _clean(value)
    if depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {
            _clean(str(name)): _HIDDEN if isinstance(item, str) and item and is_credential(str(name))
            else clean_value(item, depth + 1)
            for name, item in value.items()
        }  # fmt: skip
    if isinstance(value, list | tuple):
        return [clean_value(item, depth + 1) for item in value]
    return value if isinstance(value, bool | int | float | None) else _clean(str(value))


def _inside(path: str, folder: str) -> str:
    """Return a path as seen from a folder; one that is elsewhere stays as it is."""
    kind = PureWindowsPath if "\\" in folder or folder[1:2] == ":" else PurePosixPath
    try:
        return str(kind(os.path.normpath(path) if kind is PurePosixPath else path).relative_to(kind(folder)))
    except ValueError:
        return path
