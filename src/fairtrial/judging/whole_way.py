"""What happened in a trial as text for a judge: every event on a line of its own, within a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from fairtrial.core.events import (
    CallEvent,
    ChangeEvent,
    ErrorEvent,
    Event,
    LimitEvent,
    MessageEvent,
    NoteEvent,
    ReasoningEvent,
    ResultEvent,
)
from fairtrial.core.score import ScoreContext
from fairtrial.judging.fence import Fence
from fairtrial.text.printable import estimated_tokens, one_line

DEFAULT_TOKENS = 8000
_NAME = "WHAT HAPPENED"
_LONGEST = (8000, 4000, 2000, 1000, 500, 200)  # characters of a text, tried one after the other
_ANY = 10**9
_CONTINUED = "    | "  # before every further line of a text, so that none can pass for an event
_RULE = """\
{name} lists what was recorded of the whole trial, one event after the other: messages, calls of tools, their results, \
changed files, limits. Judge by it what was really done: whatever is claimed, and is not there, was not done. \
Long texts are cut, and events may be left out where it says so."""
_UNKNOWN = "Which tools were used {where} was not recorded: their absence from the list means nothing."

Sees = Annotated[
    Literal["answer", "trajectory"],
    msgspec.Meta(description="What the judge is shown: the answer, or everything that happened as well."),
]
TrajectoryTokens = Annotated[
    int, msgspec.Meta(ge=200, description="About how many tokens of a trajectory it is shown; the rest is left out.")
]


def sight_key(sees: Sees, tokens: int) -> tuple[Any, ...]:
    """Return what the hash of a prompt must also contain if the judge sees more than the answer."""
    return () if sees == "answer" else (sees, tokens)


def sight_rule(sees: Sees) -> str:
    """Return what a judge that sees everything has to know about it."""
    return "" if sees == "answer" else _RULE.format(name=_NAME)


def sight(sees: Sees, tokens: int, context: ScoreContext, fence: Fence) -> list[str]:
    """Return the parts of a prompt that show what happened, between the marker lines of the fence."""
    if sees == "answer":
        return []
    shown = [fence.around(_NAME, rendered(context.events, tokens))]
    return [*shown, _UNKNOWN.format(where=_where_unknown(context))] if context.tool_calls is None else shown


def _where_unknown(context: ScoreContext) -> str:
    trace = (context.answer.trace if context.answer else None) or {}
    turns = trace.get("not_told")
    several = isinstance(turns, list | tuple) and 0 < len(turns) < len(context.turns)
    return f"in turn {', '.join(map(str, turns or ()))}" if several else "in this trial"


def rendered(events: Sequence[Event], tokens: int) -> str:
    """Return events as text of about this many tokens; the same events give the same text.

    Results of tools are cut first, then all texts; then the oldest events after the first one are left out. What the
    model thought is not shown, as it is never scored.
    """
    told = [event for event in events if not isinstance(event, ReasoningEvent)]
    numbers = {event.id: number for number, event in enumerate(told, start=1) if isinstance(event, CallEvent)}

    def lines(cut_result: int, cut: int) -> list[str]:
        return [_line(number, event, numbers, cut_result, cut) for number, event in enumerate(told, start=1)]

    made: list[str] = []
    whole = max((len(line) for line in lines(_ANY, _ANY)), default=0)
    for cuts in ((_ANY, _ANY), *((cut, _ANY) for cut in _LONGEST), *((_LONGEST[-1], cut) for cut in _LONGEST)):
        if min(cuts) < whole or not made:
            made = lines(*cuts)
            if _tokens(made) <= tokens:
                return "\n".join(made)
    return "\n".join(_without_the_middle(made, tokens))


def _tokens(lines: Sequence[str]) -> int:
    return sum(estimated_tokens(line) + 1 for line in lines)


def _without_the_middle(lines: list[str], tokens: int) -> list[str]:
    """Return the first line and as many of the last ones as there is room for."""
    room = tokens - _tokens(lines[:1]) - 10  # for what says so
    kept = len(lines)
    while kept > 1 and room >= estimated_tokens(lines[kept - 1]) + 1:
        kept -= 1
        room -= estimated_tokens(lines[kept]) + 1
    left_out = kept - 1
    return [*lines[:1], f"… {left_out} events left out …", *lines[kept:]] if left_out else lines


def _line(number: int, event: Event, numbers: dict[str, int], cut_result: int, cut: int) -> str:
    who = f" · subagent {one_line(event.agent)}" if event.agent else " · subagent" if event.within else ""
    limit = cut_result if isinstance(event, ResultEvent) else cut
    head, text = _words(event, numbers)
    body = _continued(_cut(text, limit))
    return f"[{number}] turn {event.turn}{who} · {head}{': ' if body else ''}{body}"


def _words(event: Event, numbers: dict[str, int]) -> tuple[str, str]:
    """Return what an event is, in our words, and the text in it, which others wrote."""
    match event:
        case MessageEvent():
            words = {"user": "user", "assistant": "agent", "system": "system"}[event.role], event.text
        case CallEvent():
            name = one_line(f"{event.server}.{event.tool}" if event.server else event.tool)
            words = f"call of {name}", "" if event.arguments is None else _json(event.arguments)
        case ResultEvent():
            how = "rejected, not carried out" if event.rejected else "error" if event.error else "result"
            words = f"{how} of [{numbers.get(event.call, '?')}]", event.text
        case ChangeEvent():
            words = f"file {event.how}", event.path
        case LimitEvent():
            reached = "" if event.limit is None else f" of {event.limit:g}"
            words = f"limit reached, {event.kind}{reached}", ""
        case ErrorEvent() | NoteEvent() | ReasoningEvent():
            words = "error" if isinstance(event, ErrorEvent) else "note", event.text
    return words


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()


def _cut(text: str, length: int) -> str:
    """Cut a text in its middle: how it begins and how it ends tells most."""
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters left out) … {text[len(text) - half :]}"


def _continued(text: str) -> str:
    return f"\n{_CONTINUED}".join(text.splitlines())
