"""Running a check in a browser: every step as a person would do it, waiting for every expectation."""

from __future__ import annotations

import asyncio
import math
import operator
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import regex

from fairtrial.text.printable import clipped
from fairtrial.webpage import pointer
from fairtrial.webpage.checks import Check, CheckResult, Choosing, Expectation, Step
from fairtrial.webpage.clock import FRAME_MS, Clock, ScreenArea
from fairtrial.webpage.pointer import CALL_MS, PATIENCE_MS, UnreachableError

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

_POLL_MS = 50
_MOVING_MS = 1000
_PATTERN_SECONDS = 2.0
_FILLED_AT_ONCE = ("date", "time", "datetime-local", "month", "week", "color", "range")
# Errors that mean the check itself is invalid, whatever the page is like.
_BROKEN = re.compile(
    r"not a valid selector|Unknown engine|Unexpected token|while parsing|Malformed|Unknown key|Role .* is not valid",
    re.IGNORECASE,
)
_PLAIN_REASONS = {
    r"Element is not an <(input|select)": "it is not a field for that",
    r"Node is not an": "it is not a field",
}


class BrokenCheckError(Exception):
    """The check itself is invalid, so it says nothing about the page."""


class _FailedError(Exception):
    """A step failed; the message says why."""


class _UndecidedError(Exception):
    """Whether a step works cannot be decided; the message says why."""


class _Scene:
    """The page that a check runs on, and the remembered pictures of its elements."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.page = clock, clock.page
        self.remembered: dict[str, bytes] = {}


async def carry_out(clock: Clock, check: Check) -> CheckResult:
    """Run one check on a freshly loaded page."""
    from playwright.async_api import Error

    scene = _Scene(clock)
    for number, step in enumerate(check.steps, 1):
        try:
            await _step(scene, step)
        except _UndecidedError as reason:
            raise BrokenCheckError(f"check `{check.name}`, step {number}: {reason}") from None
        except (_FailedError, UnreachableError, Error) as reason:
            if _BROKEN.search(str(reason)):
                raise BrokenCheckError(f"check `{check.name}`, step {number}: {_first_line(reason)}") from None
            why = f"step {number}: {_first_line(reason)}"
            return CheckResult(name=check.name, passed=False, weight=check.weight, reason=why)
    return CheckResult(name=check.name, passed=True, weight=check.weight)


def _first_line(reason: Exception) -> str:
    """Return the reason on one line, in plain words if we have some."""
    line = str(reason).split("\n")[0].strip()
    for pattern, words in _PLAIN_REASONS.items():
        if re.search(pattern, line):
            return words
    return clipped(re.sub(r"^(?:Locator|Page|Keyboard)\.\w+: (?:Error: )?", "", line), 200)


def locate(page: Page, selector: str) -> Locator:
    """Return the visible elements that match a selector."""
    kind, _, rest = selector.partition("=")
    by = {"label": page.get_by_label, "placeholder": page.get_by_placeholder}.get(kind)
    matches = page.locator(selector) if by is None else by(rest.strip().strip("\"'"))
    return matches.filter(visible=True)


async def _step(scene: _Scene, step: Step) -> None:
    clock = scene.clock
    if step.expect is not None:
        expected = step.expect
        await _wait_until_ok(clock, lambda: _mismatch(scene, expected))
    elif step.remember is not None:
        scene.remembered[step.remember] = await _picture(clock, await _first_visible(scene, step.remember))
    elif step.press is not None:
        await clock.page.keyboard.press(step.press)
        await clock.wait(FRAME_MS)
    elif step.wait is not None:
        await clock.wait(step.wait)
    elif step.resize is not None:
        await clock.resize(step.resize)
    else:
        await _handle(scene, step)


async def _handle(scene: _Scene, step: Step) -> None:
    clock = scene.clock
    if step.click is not None:
        await pointer.click(clock, await _first_visible(scene, step.click))
    elif step.double_click is not None:
        await pointer.click(clock, await _first_visible(scene, step.double_click), times=2)
    elif step.hover is not None:
        await pointer.hover(clock, await _first_visible(scene, step.hover))
    elif step.type is not None:
        await _type(clock, await _first_visible(scene, step.type.into), step.type.text)
    elif step.choose is not None:
        await _choose(clock, await _first_visible(scene, step.choose.of), step.choose)
    elif step.drag is not None:
        onto = await _first_visible(scene, step.drag.onto)
        await pointer.drag(clock, await _first_visible(scene, step.drag.what), onto)


async def _type(clock: Clock, field: Locator, text: str) -> None:
    async def problem() -> str | None:
        return None if await field.is_editable(timeout=CALL_MS) else "nothing can be typed there"

    await _wait_until_ok(clock, problem)
    if await field.get_attribute("type", timeout=CALL_MS) in _FILLED_AT_ONCE:
        await field.fill(text, timeout=CALL_MS)
    else:
        await field.fill("", timeout=CALL_MS)
        await field.press_sequentially(text, timeout=CALL_MS)
    await clock.wait(FRAME_MS)


async def _choose(clock: Clock, field: Locator, choice: Choosing) -> None:
    """Choose an existing option; Playwright itself would wait for it while virtual time stands still."""
    if await field.evaluate("element => element.tagName", timeout=CALL_MS) != "SELECT":
        raise _FailedError("it is not a field for that")

    async def problem() -> str | None:
        if not await field.is_enabled(timeout=CALL_MS):
            return "it is disabled"
        options = field.locator("option")
        names = [" ".join(text.split()) for text in await options.all_text_contents()]
        values = await options.evaluate_all("options => options.flatMap(option => [option.value, option.label])")
        return None if choice.option in names or choice.option in values else f"there is no option “{choice.option}”"

    await _wait_until_ok(clock, problem)
    await field.select_option(choice.option, timeout=CALL_MS)
    await clock.wait(FRAME_MS)


async def _first_visible(scene: _Scene, selector: str) -> Locator:
    matches = locate(scene.page, selector)

    async def problem() -> str | None:
        return None if await matches.count() else f"there is no `{selector}` to be seen"

    await _wait_until_ok(scene.clock, problem)
    return matches.first


async def _wait_until_ok(clock: Clock, problem: Callable[[], Awaitable[str | None]]) -> None:
    """Wait until there is no problem; a problem that remains after two seconds fails the step."""
    end = clock.now + PATIENCE_MS
    while (reason := await problem()) is not None:
        if clock.now >= end:
            raise _FailedError(reason)
        await clock.wait(_POLL_MS)


async def _mismatch(scene: _Scene, expected: Expectation) -> str | None:
    """Return what does not match an expectation; None if everything does."""
    name, matches = f"`{expected.selector}`", locate(scene.page, expected.selector)
    count = await matches.count()
    if expected.visible is False:
        return f"{name} can be seen, and should not" if count else None
    limits = (
        (expected.count, operator.ne, ""),
        (expected.at_least, operator.lt, " or more"),
        (expected.at_most, operator.gt, " or fewer"),
    )
    for wanted, is_wrong, more in limits:
        if wanted is not None and is_wrong(count, wanted):
            return f"{count} × {name} instead of {wanted}{more}"
    if count == 0:
        counted = any(wanted is not None for wanted, _, _ in limits)
        return None if counted else f"there is no {name} to be seen"
    first = matches.first
    return (
        await _mismatch_in_text(first, expected, name)
        or await _mismatch_in_element(first, expected, name)
        or await _mismatch_in_picture(scene, first, expected, name)
    )


async def _mismatch_in_text(first: Locator, expected: Expectation, name: str) -> str | None:
    if expected.text is expected.contains is expected.matches is None:
        return None
    text = " ".join((await _text_of(first)).split())
    shown = f"“{clipped(text, 60)}”"
    if expected.text is not None and text != " ".join(expected.text.split()):
        return f"{name} says {shown}, not “{expected.text}”"
    if expected.contains is not None and expected.contains.casefold() not in text.casefold():
        return f"{name} says {shown}, without “{expected.contains}”"
    if expected.matches is not None and not await _matches(expected.matches, text):
        return f"{name} says {shown}, which does not match /{expected.matches}/"
    return None


async def _matches(pattern: str, text: str) -> bool:
    """Return whether a suite's pattern is found in a page's text, within a time limit: some patterns never end."""
    search = regex.compile(pattern).search
    try:
        return await asyncio.to_thread(search, text, timeout=_PATTERN_SECONDS, concurrent=True) is not None
    except TimeoutError:
        taken = f"took more than {_PATTERN_SECONDS:g} s on the text of this page"
        raise _UndecidedError(f"the pattern /{clipped(pattern, 80)}/ {taken}: write a simpler one") from None


async def _text_of(first: Locator) -> str:
    """Return an element's text as shown; not read by a script in the page's world, which the page could manipulate."""
    from playwright.async_api import Error

    try:
        return await first.inner_text(timeout=CALL_MS)
    except Error:  # SVG elements have no innerText
        return await first.text_content(timeout=CALL_MS) or ""


async def _mismatch_in_element(first: Locator, expected: Expectation, name: str) -> str | None:
    if expected.value is not None and (content := await first.input_value(timeout=CALL_MS)) != expected.value:
        return f"{name} holds “{clipped(content, 60)}”, not “{expected.value}”"
    for key, wanted in expected.attribute.items():
        actual = await first.get_attribute(key, timeout=CALL_MS)
        if not _value_matches(actual, wanted):
            return f"{name} has {key} “{actual}”, not “{wanted}”"
    for key, wanted in expected.style.items():
        if not await _has_style(first, key, wanted):
            return f"{name} does not have {key} “{wanted}”"
    if expected.focused is not None:
        focused = await first.and_(first.page.locator(":focus, :focus-within")).count() > 0
        if focused is not expected.focused:
            return f"{name} {'has' if focused else 'does not have'} the focus"
    return None


async def _has_style(first: Locator, key: str, wanted: str) -> bool:
    """Return whether an element has a style; wait for either outcome, as a busy machine could decide a timeout."""
    from playwright.async_api import expect

    style = wanted.removeprefix("!")
    while True:
        has_it = asyncio.ensure_future(expect(first).to_have_css(key, style, timeout=PATIENCE_MS))
        lacks_it = asyncio.ensure_future(expect(first).not_to_have_css(key, style, timeout=PATIENCE_MS))
        await asyncio.wait({has_it, lacks_it}, return_when=asyncio.FIRST_COMPLETED)
        confirmed = [task for task in (has_it, lacks_it) if task.done() and task.exception() is None]
        for task in (has_it, lacks_it):
            task.cancel()
        await asyncio.gather(has_it, lacks_it, return_exceptions=True)
        if confirmed:
            return (confirmed[0] is has_it) is not wanted.startswith("!")


def _value_matches(actual: str | None, wanted: str) -> bool:
    """Return whether a value is the wanted one; `!value` means anything but that value."""
    return actual != wanted[1:] if wanted.startswith("!") else actual == wanted


async def _mismatch_in_picture(scene: _Scene, first: Locator, expected: Expectation, name: str) -> str | None:
    if expected.differs is not None:
        differs = await _picture(scene.clock, first) != scene.remembered[expected.selector]
        if differs is not expected.differs:
            return f"{name} {'looks different' if differs else 'still looks the same'}"
    if expected.moves is not None:
        moves = await _moves(scene.clock, first)
        if moves is not expected.moves:
            return f"{name} {'moves' if moves else 'does not move'}"
    return None


async def _moves(clock: Clock, element: Locator) -> bool:
    before = await _picture(clock, element)
    end = clock.now + _MOVING_MS
    while clock.now < end:
        await clock.wait(4 * _POLL_MS)
        if await _picture(clock, element) != before:
            return True
    return False


async def _picture(clock: Clock, element: Locator) -> bytes:
    """Capture as much of an element as the screen can show."""
    box = await _box(element)
    seen = _intersection(box, clock.screen)
    if box is not None and seen != box and (seen is None or _fits(box, clock.screen)):
        await pointer.scroll_to(element)
        seen = _intersection(await _box(element), clock.screen)
    return b"" if seen is None else await clock.shot(seen)


async def _box(element: Locator) -> ScreenArea | None:
    bounds = await element.bounding_box(timeout=CALL_MS)
    if bounds is None:
        return None
    left, top = math.floor(bounds["x"]), math.floor(bounds["y"])
    right, bottom = math.ceil(bounds["x"] + bounds["width"]), math.ceil(bounds["y"] + bounds["height"])
    return ScreenArea(left, top, right - left, bottom - top)


def _intersection(one: ScreenArea | None, other: ScreenArea) -> ScreenArea | None:
    if one is None:
        return None
    left, top = max(one.x, other.x), max(one.y, other.y)
    right, bottom = min(one.x + one.width, other.x + other.width), min(one.y + one.height, other.y + other.height)
    return ScreenArea(left, top, right - left, bottom - top) if left < right and top < bottom else None


def _fits(one: ScreenArea, other: ScreenArea) -> bool:
    return one.width <= other.width and one.height <= other.height
