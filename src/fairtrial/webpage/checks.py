"""Checks of a page, defined by a case: what to do with the page, and what must be visible afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import regex

from fairtrial.core.options import Problems, read
from fairtrial.core.types_in_threads import look_into

SIZES: dict[str, tuple[int, int]] = {"desktop": (1280, 800), "tablet": (768, 1024), "phone": (390, 844)}
Size = Literal["desktop", "tablet", "phone"]
Selector = Annotated[
    str,
    msgspec.Meta(min_length=1, description="CSS, or text=…, label=…, role=button[name=…]; the first visible match."),
]


class _CheckPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a check."""


class Typing(_CheckPart, frozen=True, kw_only=True):
    """Text typed into a field, replacing its content."""

    into: Selector
    text: str


class Choosing(_CheckPart, frozen=True, kw_only=True):
    """An option of a select, by its value or label."""

    of: Selector
    option: str


class Dragging(_CheckPart, frozen=True, kw_only=True):
    """One element dragged onto another."""

    what: Selector
    onto: Selector


class Expectation(_CheckPart, frozen=True, kw_only=True):
    """What must be true within two seconds; all given conditions must hold."""

    shorthand: ClassVar[str] = "selector"
    selector: Selector = "body"
    visible: bool | None = None
    text: Annotated[str | None, msgspec.Meta(description="The whole text, ignoring differences in white space.")] = None
    contains: Annotated[str | None, msgspec.Meta(description="Part of the text, ignoring case.")] = None
    matches: Annotated[str | None, msgspec.Meta(description="A regular expression found in the text.")] = None
    value: Annotated[str | None, msgspec.Meta(description="The content of a field.")] = None
    count: Annotated[int, msgspec.Meta(ge=0, description="The exact number of visible matches.")] | None = None
    at_least: Annotated[int, msgspec.Meta(ge=0, description="The minimum number of visible matches.")] | None = None
    at_most: Annotated[int, msgspec.Meta(ge=0, description="The maximum number of visible matches.")] | None = None
    style: Annotated[dict[str, str], msgspec.Meta(description="Computed styles; `!value` means anything else.")] = {}
    attribute: Annotated[dict[str, str], msgspec.Meta(description="Attributes; `!value` means anything else.")] = {}
    focused: bool | None = None
    moves: Annotated[
        bool | None, msgspec.Meta(description="Whether its picture changes by itself within a second.")
    ] = None
    differs: Annotated[
        bool | None, msgspec.Meta(description="Whether its picture differs from that at the step `remember`.")
    ] = None


class Step(_CheckPart, frozen=True, kw_only=True):
    """One action or expectation: exactly one key."""

    click: Selector | None = None
    double_click: Selector | None = None
    hover: Selector | None = None
    type: Typing | None = None
    choose: Choosing | None = None
    press: Annotated[str | None, msgspec.Meta(description="A key, such as Enter, Tab or Escape.")] = None
    drag: Dragging | None = None
    wait: Annotated[int, msgspec.Meta(ge=0, le=5000, description="Milliseconds.")] | None = None
    resize: Size | None = None
    remember: Annotated[Selector | None, msgspec.Meta(description="Remember how it looks now, for `differs`.")] = None
    expect: Expectation | None = None

    def keys(self) -> list[str]:
        """Return the keys that are set."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


class Check(_CheckPart, frozen=True, kw_only=True):
    """Steps on a fresh copy of the page; the check passes if all of them succeed."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    steps: Annotated[list[Step], msgspec.Meta(min_length=1)]
    size: Size = "desktop"
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check; `reason` says what failed."""

    name: str
    passed: bool
    weight: float = 1.0
    reason: str = ""


def problems(checks: list[Check]) -> Iterator[str]:
    """Yield the problems of checks that their types do not catch."""
    names = [check.name for check in checks]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two checks have the same name `{name}`"
    for check in checks:
        for number, step in enumerate(check.steps, 1):
            where = f"check `{check.name}`, step {number}"
            keys = step.keys()
            if len(keys) != 1:
                yield f"{where}: a step must have exactly one key, not {', '.join(keys) or 'none'}"
            if step.expect is not None:
                yield from (f"{where}: {problem}" for problem in _expectation_problems(step.expect, check, number))


def _expectation_problems(expected: Expectation, check: Check, number: int) -> Iterator[str]:
    if expected.matches is not None:
        try:
            regex.compile(expected.matches)
        except regex.error as error:
            yield f"`matches` is not a valid regular expression ({error})"
    before = [step.remember for step in check.steps[: number - 1]]
    if expected.differs is not None and expected.selector not in before:
        yield f"`differs` needs a step `remember: {expected.selector}` before it"


def problems_of(metadata: dict[str, Any] | None, more: list[Check]) -> Iterator[str]:
    """Yield the problems of the checks in the metadata of a case, which a dataset may have, and of others."""
    written = (metadata or {}).get("checks") or []
    found: Problems = []
    own = (
        [read(Check, one, found, ("checks", number)) for number, one in enumerate(written)] if _is_list(written) else []
    )
    if not _is_list(written):
        yield "`checks` must be a list"
    yield from (f"{'.'.join(map(str, path))}: {message}" for path, message in found)
    if not found:
        yield from problems([*filter(None, own), *more])


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def checks_of(metadata: dict[str, Any] | None) -> list[Check]:
    """Return the checks in the metadata of a case."""
    return msgspec.convert((metadata or {}).get("checks") or [], list[Check])


def share_of_checks(results: list[CheckResult]) -> float:
    """Return the weighted share of checks that passed."""
    return sum(result.weight for result in results if result.passed) / sum(result.weight for result in results)


look_into(list[Check])
