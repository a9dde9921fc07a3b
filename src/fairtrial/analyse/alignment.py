"""Two trajectories side by side: calls of the same tool with the same arguments are on one line, and where they part.

The longest common subsequence is found by comparing 64 calls at a time: 10,000 calls on either side take half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from rapidfuzz.distance import LCSseq

from fairtrial.analyse.steps import Step
from fairtrial.core.events import CallEvent

MOST_CALLS = 10_000  # of one trial; its later ones are not looked at

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


class AlignedCalls(NamedTuple):
    """One line: a call of each trial, or of one of them."""

    a: Step | None
    b: Step | None
    same: bool  # the tool and its arguments
    same_result: bool = False


class Alignment(NamedTuple):
    """All lines in the order of both trials."""

    lines: list[AlignedCalls]
    left_out: tuple[int, int] = (0, 0)  # calls of either trial that were not looked at

    @property
    def parts(self) -> int | None:
        """The place of the first line on which the calls differ; None if none does."""
        return next((place for place, line in enumerate(self.lines) if not line.same), None)

    @property
    def shared(self) -> int:
        """How many calls both made."""
        return sum(line.same for line in self.lines)


def align(a: Sequence[Step], b: Sequence[Step]) -> Alignment:
    """Align the calls of two trials; other steps are passed over."""
    calls = [[step for step in steps if isinstance(step.event, CallEvent)] for steps in (a, b)]
    one, other = (own[:MOST_CALLS] for own in calls)
    lines: list[AlignedCalls] = []
    for left, right, same in _pieces(one, other, _call):
        if same:
            lines += (AlignedCalls(x, y, True, _result(x) == _result(y)) for x, y in zip(left, right, strict=True))
        else:
            lines += _differing(left, right)
    return Alignment(lines, (len(calls[0]) - len(one), len(calls[1]) - len(other)))


def _differing(left: Sequence[Step], right: Sequence[Step]) -> Iterator[AlignedCalls]:
    """Yield calls that differ: those of the same tool with other arguments on one line."""
    for xs, ys, same in _pieces(left, right, _tool):
        if same:
            yield from (AlignedCalls(x, y, False) for x, y in zip(xs, ys, strict=True))
        else:
            yield from (AlignedCalls(x, None, False) for x in xs)
            yield from (AlignedCalls(None, y, False) for y in ys)


def _pieces(
    left: Sequence[Step], right: Sequence[Step], key: Callable[[Step], bytes]
) -> Iterator[tuple[Sequence[Step], Sequence[Step], bool]]:
    """Yield what both have in common, and what lies between; both parts of a difference come together."""
    x = y = 0
    common = LCSseq.opcodes([key(step) for step in left], [key(step) for step in right])
    for piece in (piece for piece in common if piece.tag == "equal"):
        if piece.src_start > x or piece.dest_start > y:
            yield left[x : piece.src_start], right[y : piece.dest_start], False
        x, y = piece.src_end, piece.dest_end
        yield left[piece.src_start : x], right[piece.dest_start : y], True
    if x < len(left) or y < len(right):
        yield left[x:], right[y:], False


def _tool(step: Step) -> bytes:
    event = step.event
    assert isinstance(event, CallEvent)
    return b"%s\0%s" % ((event.server or "").encode(), event.tool.encode())


def _call(step: Step) -> bytes:
    event = step.event
    assert isinstance(event, CallEvent)
    return b"%s\0%s" % (_tool(step), _encode(event.arguments))


def _result(step: Step) -> str | None:
    return step.result.text if step.result else None
