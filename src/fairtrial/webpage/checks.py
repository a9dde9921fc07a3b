"""Checks that a case writes for the page it asks for: what somebody does with it, and what must then be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import regex

SIZES: dict[str, tuple[int, int]] = {"desktop": (1280, 800), "tablet": (768, 1024), "phone": (390, 844)}
Size = Literal["desktop", "tablet", "phone"]
Selector = Annotated[
    str,
    msgspec.Meta(min_length=1, description="CSS, or text=…, label=…, role=button[name=…]; the first visible match."),
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything in a check."""


class Typing(_Part, frozen=True, kw_only=True):
    """Text into a field, in place of what is there."""

    into: Selector
    text: str


class Choosing(_Part, frozen=True, kw_only=True):
    """An option of a select, by its value or label."""

    of: Selector
    option: str


class Dragging(_Part, frozen=True, kw_only=True):
    """Something dragged onto something else."""

    what: Selector
    onto: Selector


class Expectation(_Part, frozen=True, kw_only=True):
    """What must be seen, within two seconds; all that is given must hold."""

    shorthand: ClassVar[str] = "selector"
    selector: Selector = "body"
    visible: bool | None = None
    text: Annotated[str | None, msgspec.Meta(description="Its text, blanks apart.")] = None
    contains: Annotated[str | None, msgspec.Meta(description="In its text, upper and lower case alike.")] = None
    matches: Annotated[str | None, msgspec.Meta(description="A regular expression found in its text.")] = None
    value: Annotated[str | None, msgspec.Meta(description="What stands in a field.")] = None
    count: Annotated[int, msgspec.Meta(ge=0, description="How many visible matches there are.")] | None = None
    at_least: Annotated[int, msgspec.Meta(ge=0, description="So many visible matches or more.")] | None = None
    at_most: Annotated[int, msgspec.Meta(ge=0, description="So many visible matches or fewer.")] | None = None
    style: Annotated[dict[str, str], msgspec.Meta(description="Computed styles; `!value` is anything else.")] = {}
    attribute: Annotated[dict[str, str], msgspec.Meta(description="Attributes; `!value` is anything else.")] = {}
    focused: bool | None = None
    moves: Annotated[
        bool | None, msgspec.Meta(description="Whether its picture changes by itself within a second.")
    ] = None
    differs: Annotated[
        bool | None, msgspec.Meta(description="Whether its picture differs from when the step `remember` was made.")
    ] = None


class Step(_Part, frozen=True, kw_only=True):
    """One thing to do or to see: exactly one key."""

    click: Selector | None = None
    double_click: Selector | None = None
    hover: Selector | None = None
    type: Typing | None = None
    choose: Choosing | None = None
    press: Annotated[str | None, msgspec.Meta(description="A key, such as Enter, Tab or Escape.")] = None
    drag: Dragging | None = None
    wait: Annotated[int, msgspec.Meta(ge=0, le=5000, description="Milliseconds.")] | None = None
    resize: Size | None = None
    remember: Annotated[Selector | None, msgspec.Meta(description="How it looks now, for `differs`.")] = None
    expect: Expectation | None = None

    def given(self) -> list[str]:
        """Which of the keys were written."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


class Check(_Part, frozen=True, kw_only=True):
    """Some steps on a fresh copy of the page; it passes if every one works."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    steps: Annotated[list[Step], msgspec.Meta(min_length=1)]
    size: Size = "desktop"
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one check went; `reason` says what failed."""

    name: str
    passed: bool
    weight: float = 1.0
    reason: str = ""


def problems(checks: list[Check]) -> Iterator[str]:
    """What is wrong with checks that their types do not tell."""
    names = [check.name for check in checks]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two checks are called `{name}`"
    for check in checks:
        for number, step in enumerate(check.steps, 1):
            where = f"check `{check.name}`, step {number}"
            given = step.given()
            if len(given) != 1:
                yield f"{where}: a step has exactly one key, not {', '.join(given) or 'none'}"
            if step.expect is not None:
                yield from (f"{where}: {problem}" for problem in _expectation_problems(step.expect, check, number))


def _expectation_problems(expected: Expectation, check: Check, number: int) -> Iterator[str]:
    if expected.matches is not None:
        try:
            regex.compile(expected.matches)
        except regex.error as error:
            yield f"`matches` is no regular expression ({error})"
    before = [step.remember for step in check.steps[: number - 1]]
    if expected.differs is not None and expected.selector not in before:
        yield f"`differs` needs a step `remember: {expected.selector}` before it"


def checks_of(metadata: dict[str, Any] | None) -> list[Check]:
    """The checks that travel with a case."""
    return msgspec.convert((metadata or {}).get("checks") or [], list[Check])


def share_passed(results: list[CheckResult]) -> float:
    """The weight of the checks that passed, of all."""
    return sum(result.weight for result in results if result.passed) / sum(result.weight for result in results)
