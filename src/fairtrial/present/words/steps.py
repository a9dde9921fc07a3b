"""One step of a trajectory in words: for the page, the terminal and the report."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse.steps import Only, Step, Steps
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
from fairtrial.core.formatting import milliseconds
from fairtrial.text.printable import counted, level, printable

_BRIEF = 160  # characters of the line that stands for a step
STATES = {
    "failed": "failed",
    "rejected": "rejected",
    "unfinished": "did not finish",
    "limit": "limit reached",
}
SOURCES = {"recorded": "from a recording", "mock": "from a mock"}
CHOICES: dict[Only, str] = {"": "All", "calls": "Calls", "errors": "Errors"}
LIMITS = {"time": "time", "turns": "turns of its model", "tokens": "tokens", "money": "money"}
_AMOUNTS = {"time": "{:g} s", "turns": "{:g}", "tokens": "{:,.0f}", "money": "${:g}"}


class StepText(msgspec.Struct, frozen=True):
    """A text of a step, as long as it is shown, and how long it is."""

    name: str  # what it is: arguments, result; empty for the step's own text
    text: str
    length: int

    @property
    def more(self) -> int:
        """How many characters are not shown."""
        return self.length - len(self.text)


class StepWords(msgspec.Struct, frozen=True, kw_only=True):
    """One step in words: what every surface shows of it, in the same order."""

    number: int
    turn: int
    kind: str
    name: str  # who, or which tool
    brief: str  # on one line
    gave: str = ""  # what a call returned, on one line
    state: str = ""
    mark: str = ""  # the state as a word of code
    source: str = ""  # where a result came from, if not from the tool
    begun: str = ""  # in its turn
    took: str = ""
    depth: int = 0
    agent: str = ""
    returned: int | None = None  # the number of the event with the result
    texts: tuple[StepText, ...] = ()


def step_words(step: Step, longest: int) -> StepWords:
    """Return a step in words, with texts of at most this many characters."""
    event, result = step.event, step.result
    said = _said(event, longest)
    returned = _own(result.text, longest, "result") if result else ()
    return StepWords(
        number=step.number,
        turn=event.turn,
        kind=said.kind,
        name=_one_line(said.name),
        brief=_one_line(said.brief),
        gave=_one_line(result.text) if result else "",
        state="" if said.kind in ("limit", "error") else STATES.get(step.state, ""),
        mark=step.state,
        source=SOURCES.get(result.source, "") if result else "",
        begun="" if event.at is None else milliseconds(1000 * event.at),
        took="" if result is None or result.ms is None else milliseconds(result.ms),
        depth=step.depth,
        agent=_one_line(event.agent),
        returned=step.returned,
        texts=(*said.texts, *returned),
    )


class _Said(NamedTuple):
    kind: str
    name: str
    brief: str = ""  # what it comes to, on one line
    texts: tuple[StepText, ...] = ()


def _said(event: Event, longest: int) -> _Said:
    match event:
        case CallEvent():
            arguments, line = _arguments(event.arguments)
            texts = (_text("arguments", arguments, longest),) if len(line) > _BRIEF else ()  # else its line says it
            said = _Said("call", f"{event.server or 'built-in'}.{event.tool}", line, texts)
        case MessageEvent():
            name = event.role if event.role != "assistant" else event.agent or "agent"
            said = _Said("message", name, event.text, _own(event.text, longest))
        case ChangeEvent():
            said = _Said("change", "file", f"{event.how} {event.path}")
        case LimitEvent():
            said = _Said("limit", "limit", limit_words(event))
        case ErrorEvent():
            kind = f"{event.kind}: " if event.kind else ""
            said = _Said("error", "error", f"{kind}{event.text}", _own(event.text, longest))
        case ReasoningEvent() | NoteEvent() | ResultEvent():
            name = str(event.__struct_config__.tag)
            said = _Said(name, name, event.text, _own(event.text, longest))
    return said


def limit_words(event: LimitEvent) -> str:
    """Say which limit an agent reached: `time, 120 s`."""
    amount = "" if event.limit is None else f", {_AMOUNTS[event.kind].format(event.limit)}"
    return f"{LIMITS[event.kind]}{amount}"


def _own(text: str, longest: int, name: str = "") -> tuple[StepText, ...]:
    """Return the text of a step if its line does not say it all."""
    whole = len(text) <= _BRIEF and "\n" not in text.strip()
    return () if whole else (_text(name, text, longest),)


def _text(name: str, text: str, longest: int) -> StepText:
    return StepText(name, level(printable(text[:longest])), len(text))


def _one_line(text: str) -> str:
    line = level(printable(" ".join(text[: 4 * _BRIEF].split())))
    return line if len(line) <= _BRIEF and len(text) <= 4 * _BRIEF else f"{line[: _BRIEF - 1]}…"


def _arguments(arguments: Any) -> tuple[str, str]:
    """Return arguments as a text to read, and as a line."""
    if arguments in (None, "", {}, []):
        return "", ""
    if isinstance(arguments, str):
        return arguments, arguments
    packed = msgspec.json.encode(arguments, enc_hook=repr)
    return msgspec.json.format(packed, indent=2).decode(), msgspec.json.format(packed, indent=0).decode()


# -- of all steps ----------------------------------------------------------------------------------


def steps_headline(steps: Steps) -> str:
    """Count what happened: `12 events, 4 tool calls, 1 of them failed`."""
    wrong = sum(1 for step in steps.calls if step.state)
    failed = f", {wrong} of them went wrong" if wrong else ""
    return f"{counted(steps.events, 'event')}, {counted(len(steps.calls), 'tool call')}{failed}"


def unknown_words(turn: int, turns: int) -> str:
    """Say that a target did not tell what it called, which is not the same as that it called nothing."""
    return f"turn {turn}: calls not recorded" if turns > 1 else "calls not recorded"


def choice_words(only: Only, steps: Steps) -> str:
    """Name a choice of steps, with how many there are."""
    return f"{CHOICES[only]} {len(steps.chosen(only)):,}"


def left_words(count: int) -> str:
    """Say that steps are left out."""
    return f"{count:,} more"
