"""Carrying out a check in a browser: every step as a person would do it, every expectation waited for."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import regex

from fairtrial.core.text import clipped
from fairtrial.webpage import pointer
from fairtrial.webpage.checks import Check, CheckResult, Choosing, Expectation, Step
from fairtrial.webpage.clock import FRAME_MS, Box, Clock
from fairtrial.webpage.pointer import CALL_MS, PATIENCE_MS, UnreachableError

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

_LOOK_AGAIN_MS = 50
_MOVING_MS = 1000
_PATTERN_SECONDS = 2.0
_SET_AT_ONCE = ("date", "time", "datetime-local", "month", "week", "color", "range")
# The check itself is wrong, whatever the page is like.
_BROKEN = re.compile(
    r"not a valid selector|Unknown engine|Unexpected token|while parsing|Malformed|Unknown key|Role .* is not valid",
    re.IGNORECASE,
)
_IN_WORDS = {
    r"Element is not an <(input|select)": "it is no field for that",
    r"Node is not an": "it is no field",
}


class BrokenCheckError(Exception):
    """The check itself is wrong: nothing can be said of the page."""


class _FailedError(Exception):
    """A step that does not work, and why."""


class _UndecidedError(Exception):
    """A step of which nobody can tell whether it works, and why."""


class _Scene:
    """A page that a check is carried out on, and how things in it looked when they were to be remembered."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.page = clock, clock.page
        self.remembered: dict[str, bytes] = {}


async def carry_out(clock: Clock, check: Check) -> CheckResult:
    """One check on a page that was just opened."""
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
    """Why, in words of ours where we have some."""
    line = str(reason).split("\n")[0].strip()
    for pattern, words in _IN_WORDS.items():
        if re.search(pattern, line):
            return words
    return clipped(re.sub(r"^(?:Locator|Page|Keyboard)\.\w+: (?:Error: )?", "", line), 200)


def located(page: Page, selector: str) -> Locator:
    """What a selector means; only what can be seen counts."""
    kind, _, rest = selector.partition("=")
    if kind == "label":
        found = page.get_by_label(rest.strip().strip("\"'"))
    elif kind == "placeholder":
        found = page.get_by_placeholder(rest.strip().strip("\"'"))
    else:
        found = page.locator(selector)
    return found.filter(visible=True)


async def _step(scene: _Scene, step: Step) -> None:
    clock = scene.clock
    if step.expect is not None:
        expected = step.expect
        await _until(clock, lambda: _amiss(scene, expected))
    elif step.remember is not None:
        scene.remembered[step.remember] = await _picture(clock, await _there(scene, step.remember))
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
    """Steps that do something to one element."""
    clock = scene.clock
    if step.click is not None:
        await pointer.click(clock, await _there(scene, step.click))
    elif step.double_click is not None:
        await pointer.click(clock, await _there(scene, step.double_click), times=2)
    elif step.hover is not None:
        await pointer.hover(clock, await _there(scene, step.hover))
    elif step.type is not None:
        await _type(clock, await _there(scene, step.type.into), step.type.text)
    elif step.choose is not None:
        await _choose(clock, await _there(scene, step.choose.of), step.choose)
    elif step.drag is not None:
        onto = await _there(scene, step.drag.onto)
        await pointer.drag(clock, await _there(scene, step.drag.what), onto)


async def _type(clock: Clock, field: Locator, text: str) -> None:
    async def amiss() -> str | None:
        return None if await field.is_editable(timeout=CALL_MS) else "nothing can be typed there"

    await _until(clock, amiss)
    if await field.get_attribute("type", timeout=CALL_MS) in _SET_AT_ONCE:
        await field.fill(text, timeout=CALL_MS)
    else:
        await field.fill("", timeout=CALL_MS)
        await field.press_sequentially(text, timeout=CALL_MS)
    await clock.wait(FRAME_MS)


async def _choose(clock: Clock, field: Locator, choice: Choosing) -> None:
    """One of the options that are there; Playwright itself would wait for it while no time passes."""
    if await field.evaluate("element => element.tagName", timeout=CALL_MS) != "SELECT":
        raise _FailedError("it is no field for that")

    async def amiss() -> str | None:
        if not await field.is_enabled(timeout=CALL_MS):
            return "it is disabled"
        options = field.locator("option")
        names = [" ".join(text.split()) for text in await options.all_text_contents()]
        values = await options.evaluate_all("options => options.flatMap(option => [option.value, option.label])")
        return None if choice.option in names or choice.option in values else f"there is no option “{choice.option}”"

    await _until(clock, amiss)
    await field.select_option(choice.option, timeout=CALL_MS)
    await clock.wait(FRAME_MS)


async def _there(scene: _Scene, selector: str) -> Locator:
    """The first visible match, as soon as there is one."""
    found = located(scene.page, selector)

    async def amiss() -> str | None:
        return None if await found.count() else f"there is no `{selector}` to be seen"

    await _until(scene.clock, amiss)
    return found.first


async def _until(clock: Clock, amiss: Callable[[], Awaitable[str | None]]) -> None:
    """Wait until nothing is amiss; what still is after two seconds is why the step fails."""
    end = clock.now + PATIENCE_MS
    while (reason := await amiss()) is not None:
        if clock.now >= end:
            raise _FailedError(reason)
        await clock.wait(_LOOK_AGAIN_MS)


async def _amiss(scene: _Scene, expected: Expectation) -> str | None:
    """What is not as it should be; None where everything is."""
    name, found = f"`{expected.selector}`", located(scene.page, expected.selector)
    count = await found.count()
    counted = expected.count is not None or expected.at_least is not None or expected.at_most is not None
    if expected.visible is False:
        return f"{name} can be seen, and should not" if count else None
    if expected.count is not None and count != expected.count:
        return f"{count} × {name} instead of {expected.count}"
    if expected.at_least is not None and count < expected.at_least:
        return f"{count} × {name} instead of {expected.at_least} or more"
    if expected.at_most is not None and count > expected.at_most:
        return f"{count} × {name} instead of {expected.at_most} or fewer"
    if count == 0:
        return None if counted else f"there is no {name} to be seen"
    first = found.first
    return (
        await _amiss_in_text(first, expected, name)
        or await _amiss_in_element(first, expected, name)
        or await _amiss_in_picture(scene, first, expected, name)
    )


async def _amiss_in_text(first: Locator, expected: Expectation, name: str) -> str | None:
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
    """Whether a suite's pattern is found in a page's text, within limits: some take for ever."""
    search = regex.compile(pattern).search
    try:
        return await asyncio.to_thread(search, text, timeout=_PATTERN_SECONDS, concurrent=True) is not None
    except TimeoutError:
        taken = f"took more than {_PATTERN_SECONDS:g} s on the text of this page"
        raise _UndecidedError(f"the pattern /{clipped(pattern, 80)}/ {taken}: write a simpler one") from None


async def _text_of(first: Locator) -> str:
    """As somebody reads it. Not by a script in the page's own world: a page could change what that sees."""
    from playwright.async_api import Error

    try:
        return await first.inner_text(timeout=CALL_MS)
    except Error:  # what is drawn as SVG has no innerText
        return await first.text_content(timeout=CALL_MS) or ""


async def _amiss_in_element(first: Locator, expected: Expectation, name: str) -> str | None:
    if expected.value is not None and (found := await first.input_value(timeout=CALL_MS)) != expected.value:
        return f"{name} holds “{clipped(found, 60)}”, not “{expected.value}”"
    for key, wanted in expected.attribute.items():
        given = await first.get_attribute(key, timeout=CALL_MS)
        if not _as_wanted(given, wanted):
            return f"{name} has {key} “{given}”, not “{wanted}”"
    for key, wanted in expected.style.items():
        if not await _has_style(first, key, wanted):
            return f"{name} does not have {key} “{wanted}”"
    if expected.focused is not None:
        focused = await first.and_(first.page.locator(":focus, :focus-within")).count() > 0
        if focused is not expected.focused:
            return f"{name} {'has' if focused else 'does not have'} the focus"
    return None


async def _has_style(first: Locator, key: str, wanted: str) -> bool:
    """Ask for both, and one of them is so: a limit would decide it on a busy machine."""
    from playwright.async_api import expect

    style = wanted.removeprefix("!")
    while True:
        given = asyncio.ensure_future(expect(first).to_have_css(key, style, timeout=PATIENCE_MS))
        other = asyncio.ensure_future(expect(first).not_to_have_css(key, style, timeout=PATIENCE_MS))
        await asyncio.wait({given, other}, return_when=asyncio.FIRST_COMPLETED)
        true = [one for one in (given, other) if one.done() and one.exception() is None]
        for one in (given, other):
            one.cancel()
        await asyncio.gather(given, other, return_exceptions=True)
        if true:
            return (true[0] is given) is not wanted.startswith("!")


def _as_wanted(found: str | None, wanted: str) -> bool:
    """`!value` means anything but that value."""
    return found != wanted[1:] if wanted.startswith("!") else found == wanted


async def _amiss_in_picture(scene: _Scene, first: Locator, expected: Expectation, name: str) -> str | None:
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
        await clock.wait(4 * _LOOK_AGAIN_MS)
        if await _picture(clock, element) != before:
            return True
    return False


async def _picture(clock: Clock, element: Locator) -> bytes:
    """As much of it as the screen can show."""
    box = await _box(element)
    seen = _common(box, clock.screen)
    if box is not None and seen != box and (seen is None or _fits(box, clock.screen)):
        await pointer.scroll_to(element)
        seen = _common(await _box(element), clock.screen)
    return b"" if seen is None else await clock.shot(seen)


async def _box(element: Locator) -> Box | None:
    """Where it is, in whole pixels; None for what has no size."""
    found = await element.bounding_box(timeout=CALL_MS)
    if found is None:
        return None
    left, top = math.floor(found["x"]), math.floor(found["y"])
    right, bottom = math.ceil(found["x"] + found["width"]), math.ceil(found["y"] + found["height"])
    return Box(left, top, right - left, bottom - top)


def _common(one: Box | None, other: Box) -> Box | None:
    """What two boxes have in common."""
    if one is None:
        return None
    left, top = max(one.x, other.x), max(one.y, other.y)
    right, bottom = min(one.x + one.width, other.x + other.width), min(one.y + one.height, other.y + other.height)
    return Box(left, top, right - left, bottom - top) if left < right and top < bottom else None


def _fits(one: Box, other: Box) -> bool:
    return one.width <= other.width and one.height <= other.height
