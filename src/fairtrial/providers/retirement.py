"""Models that end, or that another one answers for: said everywhere in the words of this module.

A date in a sheet may be wrong, and providers move theirs: nothing is refused because of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Literal

import msgspec

from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.sheet import Sheet, sheet_of
from fairtrial.text.printable import counted

NOTED = 90  # days before its end from which on a model is noted
WARNED = 30  # and from which on one is warned


class Retirement(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the end of a model; `model` is its full name, `name` what a suite calls the target."""

    model: str
    name: str
    level: Literal["note", "warning", "over"]
    words: str
    ends: date | None = None
    not_before: date | None = None
    successor: str = ""
    served_by: str = ""

    @property
    def line(self) -> str:
        """The words after what they are: a note or a warning."""
        return f"{'note' if self.level == 'note' else 'warning'}: {self.words}"


def now() -> datetime:
    """Return the time: the only place that asks for it, where tests can set it."""
    return datetime.now(UTC)


def today() -> date:
    """Return the day in UTC."""
    return now().date()


def in_words(day: date) -> str:
    """Return a date in words: 11 December 2026."""
    return f"{day.day} {day:%B %Y}"


def retirement(provider: str, model: str, name: str = "", within: int = NOTED) -> Retirement | None:
    """Return what to say about the end of a model; None if it is more than `within` days away, or not known."""
    sheet = sheet_of(provider, model)
    left, earliest = _days(sheet.ends), _days(sheet.not_before)
    name = name or f"{provider}:{model}"
    level: Literal["note", "warning", "over"] = "note"
    parts = []
    if left is not None and left <= within:
        level = "over" if left < 0 else "warning" if left <= WARNED else "note"
        parts.append(_ending(sheet, left))
    elif left is None and earliest is not None and earliest <= within:
        assert sheet.not_before is not None
        parts.append(f"may end from {in_words(sheet.not_before)} on{_successor(sheet)}")
    if sheet.served_by:
        parts.append(f"is served by {sheet.served_by}: that model answers in its place")
    if not parts:
        return None
    return Retirement(
        model=f"{provider}:{model}",
        name=name,
        level=level,
        words=f"{name} {'; it '.join(parts)}",
        ends=sheet.ends,
        not_before=sheet.not_before,
        successor=sheet.successor,
        served_by=sheet.served_by,
    )


def _ending(sheet: Sheet, left: int) -> str:
    assert sheet.ends is not None
    day = in_words(sheet.ends)
    if left < 0:
        return f"was to end on {day}: it is asked all the same, for such dates change{_successor(sheet)}"
    when = f"in {counted(left, 'day')}" if left else "today"
    return f"ends on {day}, {when}{_successor(sheet)}"


def _successor(sheet: Sheet) -> str:
    return f"; its successor is {sheet.successor}" if sheet.successor else ""


def _days(day: date | None) -> int | None:
    return None if day is None else (day - today()).days


def retiring(specs: Iterable[TargetSpec], within: int = NOTED) -> list[Retirement]:
    """Return what to say about the models behind these targets, each once, those that end first at the top."""
    found: dict[str, Retirement] = {}
    for spec in specs:
        model = spec.model_behind
        known = retirement(spec.provider, model, _name_of(spec, model), within) if model else None
        if known is not None:
            found.setdefault(known.words, known)
    return sorted(found.values(), key=lambda one: one.ends or one.not_before or date.max)


def _name_of(spec: TargetSpec, model: str) -> str:
    """Return what a suite calls a target, with its model if that is not part of it."""
    return spec.id if model in spec.id else f"{spec.id} ({spec.provider}:{model})"


def gone(spec: TargetSpec) -> str:
    """Return what happened to a model of which its provider says that it does not exist."""
    sheet = sheet_of(spec.provider, spec.model_behind)
    left = _days(sheet.ends)
    if left is None:
        return f"there is no such model{_successor(sheet)}"
    assert sheet.ends is not None
    day = in_words(sheet.ends)
    words = "it ended on" if left <= 0 else "it is gone, before its end on"
    return f"{words} {day}{_successor(sheet)}"
