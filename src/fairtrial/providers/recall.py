"""What a model is reminded of in a conversation: the tools that it called in earlier turns, and what they returned.

It is made from the events of these turns, so that a conversation that was interrupted is remembered like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from fairtrial.core.events import CallEvent, Event, MessageEvent, ReasoningEvent, ResultEvent
from fairtrial.providers.tools import RequestedCall, Tool, ToolResult, ToolRound


def recall(
    happened: Mapping[int, Sequence[Event]], tools: Iterable[Tool], *, ids: bool = True
) -> dict[int, tuple[ToolRound, ...]]:
    """Return the steps of earlier turns in which tools were called that the model has now, by the places of the turns.

    A call without a result is left out, as is one of a tool that there is not, or with arguments that could not be
    read: APIs refuse them. What else the model said in such a step goes with them. Very long results are as the record
    has them: cut, with a word about it.
    """
    names = {(tool.server, tool.tool): tool.name for tool in tools}
    if not names:
        return {}
    # Of a length and of letters and digits that every API accepts; some want exactly nine.
    new_ids = (f"call{number:05}" if ids else "" for number in count())
    return {place: tuple(_steps(happened[place], names, new_ids)) for place in sorted(happened)}


def _steps(events: Sequence[Event], names: Mapping[tuple[str, str], str], ids: Iterator[str]) -> Iterator[ToolRound]:
    own = [event for event in events if not event.within]  # what subagents did is in the result of their call
    results = {event.call: event for event in own if isinstance(event, ResultEvent)}
    for step in _split(own):
        calls = [event for event in step if isinstance(event, CallEvent) and _can_be_sent(event, names, results)]
        found = [
            ToolResult(
                call=RequestedCall(id=next(ids), name=names[call.server or "", call.tool], arguments=call.arguments),
                text=results[call.id].text,
                error=results[call.id].error,
            )
            for call in calls
        ]
        if found:
            text = "\n".join(event.text for event in step if isinstance(event, MessageEvent))
            thinking = "\n".join(event.text for event in step if isinstance(event, ReasoningEvent))
            yield ToolRound(text=text, thinking=thinking, results=tuple(found))


def _can_be_sent(call: CallEvent, names: Mapping[tuple[str, str], str], results: Mapping[str, ResultEvent]) -> bool:
    return call.id in results and (call.server or "", call.tool) in names and isinstance(call.arguments, dict)


def _split(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Split a turn into what the model said at once: words before calls, and calls before their results."""
    step: list[Event] = []
    called = returned = False
    for event in events:
        says = isinstance(event, ReasoningEvent) or (isinstance(event, MessageEvent) and event.role == "assistant")
        if (says and called) or (isinstance(event, CallEvent) and returned):
            yield step
            step, called, returned = [], False, False
        if says or isinstance(event, CallEvent):
            step.append(event)
        called = called or isinstance(event, CallEvent)
        returned = returned or isinstance(event, ResultEvent)
    yield step
