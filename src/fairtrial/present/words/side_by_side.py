"""Two trajectories side by side, in words: where they part, and what each of them called there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.alignment import AlignedCalls, Alignment
from fairtrial.present.words.steps import StepWords, step_words
from fairtrial.text.printable import counted, level, one_line

_LONGEST = 1000  # characters of a text


class LineWords(msgspec.Struct, frozen=True, kw_only=True):
    """One line: what either trial called, and how the calls differ."""

    place: int  # from 1
    a: StepWords | None
    b: StepWords | None
    kind: str  # same, result, arguments, one: what is different about them
    difference: str


_DIFFERENCES = {"same": "", "result": "same call, other result", "arguments": "other arguments", "one": "only here"}


def parting_words(alignment: Alignment, a: str, b: str) -> str:
    """Say where two trials part: `the first 2 calls are the same; then a calls x.y, and b calls x.z`."""
    return level(one_line(_parting(alignment, a, b)))


def _parting(alignment: Alignment, a: str, b: str) -> str:
    place, lines = alignment.parts, alignment.lines
    if not lines:
        return "neither called a tool"
    if place is None:
        others = sum(not line.same_result for line in lines)
        same = "the only call is the same" if len(lines) == 1 else f"all {len(lines):,} calls are the same"
        return f"{same}; {others:,} with another result" if others else same
    before = (
        "" if not place else "the first call is the same; " if place == 1 else f"the first {place:,} are the same; "
    )
    if lines[place].a and lines[place].b:
        return f"{before}then both {_then(alignment, place, 0).replace('calls', 'call', 1)}, with different arguments"
    return f"{before}then {a} {_then(alignment, place, 0)}, and {b} {_then(alignment, place, 1)}"


def _then(alignment: Alignment, place: int, side: int) -> str:
    """Say what a trial called next, from a line on."""
    steps = ((line.a, line.b)[side] for line in alignment.lines[place:])
    step = next((step for step in steps if step), None)
    return f"calls {step_words(step, 0).name}" if step else "calls nothing more"


def left_out_words(alignment: Alignment, a: str, b: str) -> list[str]:
    """Say which calls were not looked at."""
    counts = zip((a, b), alignment.left_out, strict=True)
    return [f"{name}: the last {counted(count, 'call')} were not compared" for name, count in counts if count]


def line_words(lines: Sequence[AlignedCalls], first: int = 1) -> list[LineWords]:
    """Return lines in words; the first of them has this number."""
    found = []
    for place, line in enumerate(lines, start=first):
        kind = _kind(line)
        sides = [step_words(step, _LONGEST) if step else None for step in (line.a, line.b)]
        found.append(LineWords(place=place, a=sides[0], b=sides[1], kind=kind, difference=_DIFFERENCES[kind]))
    return found


def _kind(line: AlignedCalls) -> str:
    if line.same:
        return "same" if line.same_result else "result"
    return "arguments" if line.a and line.b else "one"
