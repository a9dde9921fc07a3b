"""The whole trajectory of a trial: what was asked and answered in every turn, and what was done in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairtrial.core.events import Event, MessageEvent, NoteEvent, ReasoningEvent
from fairtrial.core.trace import END, events_of


class Exchanged(NamedTuple):
    """One turn: what the user said, and the answer, if there is one."""

    question: str
    answer: str | None
    reasoning: str | None = None


def trajectory(turns: Sequence[Exchanged], trace: Mapping[str, Any] | None) -> tuple[Event, ...]:
    """Return everything that happened in a trial, in its order: its trace, with the questions and answers around it.

    A model without tools has no trace; its trajectory is the conversation.
    """
    told = events_of(trace, len(turns)) or ()
    events: list[Event] = []
    for number, turn in enumerate(turns, start=1):
        # The session that another program logged is one question; its trace has all turns that followed.
        rest = number == len(turns)
        own = [event for event in told if event.turn == number or (rest and event.turn > number)]
        events += _turn(turn, number, own)
    return tuple(events)


def _turn(turn: Exchanged, number: int, told: Sequence[Event]) -> list[Event]:
    own = [event for event in told if not event.within]
    last = [event for event in told if isinstance(event, NoteEvent) and event.kind == END]
    events = [event for event in told if event not in last]
    if not any(isinstance(event, MessageEvent) and event.role == "user" for event in own):
        events.insert(0, MessageEvent(text=turn.question, role="user", turn=number))
    if turn.reasoning and not any(isinstance(event, ReasoningEvent) for event in own):
        events.append(ReasoningEvent(text=turn.reasoning, turn=number))
    said = [event.text for event in own if isinstance(event, MessageEvent) and event.role == "assistant"]
    if turn.answer and turn.answer.strip() not in (text.strip() for text in said[-1:]):
        events.append(MessageEvent(text=turn.answer, turn=number))
    return events + last
