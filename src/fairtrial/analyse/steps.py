"""The steps of a trajectory: its events in their order, each call with what it returned, and which of them failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from fairtrial.core.events import CallEvent, ErrorEvent, Event, LimitEvent, ResultEvent

State = Literal["", "failed", "rejected", "unfinished", "limit"]
Only = Literal["", "calls", "errors"]  # which steps are shown
ONLY: tuple[Only, ...] = ("", "calls", "errors")


class Step(NamedTuple):
    """One event with its number in the list, from 1; a call also has its result, and that event's number."""

    number: int
    event: Event
    result: ResultEvent | None = None
    returned: int | None = None
    depth: int = 0  # of subagents: 1 is the work of one that the agent itself started

    @property
    def state(self) -> State:
        """How it went wrong, if it did."""
        if isinstance(self.event, LimitEvent):
            return "limit"
        if isinstance(self.event, ErrorEvent):
            return "failed"
        result = self.event if isinstance(self.event, ResultEvent) else self.result
        if result is None:
            return "unfinished" if isinstance(self.event, CallEvent) else ""
        return "rejected" if result.rejected else "failed" if result.error else ""


class Steps:
    """The steps of one trajectory, and what is to be known before any of them is shown."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.all = tuple(_steps(events))
        self.events = len(events)
        self.calls = [step for step in self.all if isinstance(step.event, CallEvent)]
        self.errors = [step for step in self.all if step.state]
        self.turns = max((step.event.turn for step in self.all), default=1)
        self.spans = _spans(self.all)

    def chosen(self, only: Only) -> Sequence[Step]:
        """Return all steps, or only calls, or only what went wrong."""
        return {"": self.all, "calls": self.calls, "errors": self.errors}[only]

    @property
    def first_failure(self) -> int | None:
        """The number of the first step that went wrong."""
        return self.errors[0].number if self.errors else None


def _steps(events: Sequence[Event]) -> Iterator[Step]:
    results: dict[str, tuple[int, ResultEvent]] = {}
    within: dict[str, str] = {}
    for number, event in enumerate(events, start=1):
        if isinstance(event, ResultEvent):
            results.setdefault(event.call, (number, event))
        elif isinstance(event, CallEvent):
            within[event.id] = event.within
    for number, event in enumerate(events, start=1):
        depth = _depth(event.within, within)
        if isinstance(event, CallEvent):
            returned, result = results.get(event.id, (None, None))
            yield Step(number, event, result, returned, depth)
        elif not isinstance(event, ResultEvent) or event.call not in within:
            yield Step(number, event, depth=depth)


def _depth(call: str, within: dict[str, str], most: int = 8) -> int:
    """Return in how many calls a step is; an agent's own list may run in a circle."""
    depth = 0
    while call and depth < most:
        depth, call = depth + 1, within.get(call, "")
    return depth


def _spans(steps: Sequence[Step]) -> dict[int, float]:
    """Return how many seconds each turn took, as far as its events say."""
    spans: dict[int, float] = {}
    for step in steps:
        if step.event.at is not None:
            took = (step.result.ms or 0.0) / 1000 if step.result else 0.0
            spans[step.event.turn] = max(spans.get(step.event.turn, 0.0), step.event.at + took)
    return spans
