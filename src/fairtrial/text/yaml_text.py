"""YAML of strangers, read within limits: of depth, of what aliases stand for, of the digits of a number."""

from __future__ import annotations

import re
from typing import Any

import yaml

from fairtrial.text.printable import one_line

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 200  # of lists and mappings: parsers and everything that follows are recursive
FREE_NODES, NODES_PER_CHARACTER = 100_000, 4  # without aliases, a value takes at least one character
_MAX_DIGITS = 1000  # YAML 1.1 reads 1:59:59 as a number, and long ones take time with the square of their length
_NUMBER = re.compile(r"[-+]?[\d:_.]+")
_OPENING, _CLOSING = (yaml.SequenceStartEvent, yaml.MappingStartEvent), (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def read_yaml(text: str, loader: Any = LOADER) -> Any:
    """Return what a text says, by a safe loader; raise yaml.YAMLError if it is not YAML, or larger than it looks."""
    check_yaml(text)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506
    except (ValueError, OverflowError, RecursionError) as error:  # of numbers and dates that cannot be
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None


def reason_of(error: yaml.YAMLError) -> str:
    """Return what is wrong with a text that is not YAML, on one line; where it is comes last."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    reason = reason.replace("found unhashable key", "a list or a mapping is used as a key")
    reason = re.sub(r"failed to (?:convert|decode) base64 data.*", "what is marked as binary is not base64", reason)
    return one_line(f"{reason} in line {mark.line + 1}" if mark else str(reason))


def check_yaml(text: str, *, aliases: bool = True) -> None:
    """Raise yaml.YAMLError if a text is nested too deeply, or if its aliases stand for too much.

    `aliases`: whether they are looked at; who reads suites counts what they stand for by itself, merged keys once.
    """
    measure = _Measure(FREE_NODES + NODES_PER_CHARACTER * len(text))
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, _OPENING):
            measure.open(event)
        elif isinstance(event, _CLOSING):
            measure.close()
        elif isinstance(event, yaml.AliasEvent) and aliases:
            measure.repeat(event)
        elif isinstance(event, yaml.ScalarEvent):
            measure.add(event)


class _Measure:
    """How many values a text stands for, with what its aliases stand for."""

    def __init__(self, most: int) -> None:
        self._most, self._read = most, 0
        self._open: list[tuple[str | None, int]] = []  # anchors of what is open, and how much was read before
        self._sizes: dict[str | None, int] = {}

    def open(self, event: Any) -> None:
        self._read += 1
        self._open.append((event.anchor, self._read))
        if len(self._open) > MAX_DEPTH:
            raise _problem(event, f"nested more than {MAX_DEPTH} levels deep")

    def close(self) -> None:
        anchor, before = self._open.pop()
        self._sizes[anchor] = self._read - before

    def repeat(self, event: Any) -> None:
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise _problem(event, "an anchor refers to itself")
        self._read += 1 + self._sizes.get(event.anchor, 0)
        if self._read > self._most:
            raise _problem(event, "aliases stand for too much")

    def add(self, event: Any) -> None:
        self._read += 1
        if event.implicit[0] and len(event.value) > _MAX_DIGITS and _NUMBER.fullmatch(event.value):
            raise _problem(event, f"a number with more than {_MAX_DIGITS:,} digits")


def _problem(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
