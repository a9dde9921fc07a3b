"""Carrying out a check in a browser: every step as a person would do it, every expectation waited for."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

from fairtrial.core.text import clipped
from fairtrial.webpage.checks import SIZES, Check, CheckResult, Expectation, Step

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

_PATIENCE_MS = 2000  # for an element to be there and for an expectation to come true
_LOOK_AGAIN = 0.05
_MOVING = 1.0
_SET_AT_ONCE = ("date", "time", "datetime-local", "month", "week", "color", "range")
# The check itself is wrong, whatever the page is like.
_BROKEN = re.compile(
    r"not a valid selector|Unknown engine|Unexpected token|while parsing|Malformed|Unknown key|Role .* is not valid",
    re.IGNORECASE,
)
_IN_WORDS = {
    r"Timeout \d+ms exceeded": "it could not be done: something covers it, or it is disabled",
    r"Element is not an <(input|select)": "it is no field for that",
    r"Node is not an": "it is no field",
}


class BrokenCheckError(Exception):
    """The check itself is wrong: nothing can be said of the page."""


class _FailedError(Exception):
    """A step that does not work, and why."""


async def carry_out(page: Page, check: Check) -> CheckResult:
    """One check on a page that was just opened."""
    from playwright.async_api import Error

    remembered: dict[str, bytes] = {}
    for number, step in enumerate(check.steps, 1):
        try:
            await _step(page, step, remembered)
        except (_FailedError, Error) as reason:
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


def patience(check: Check) -> float:
    """The seconds that a check may take, if everything is as slow as it may be."""
    return sum(4.0 if step.wait is None else 1.0 + step.wait / 1000 for step in check.steps)


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


async def _step(page: Page, step: Step, remembered: dict[str, bytes]) -> None:
    if step.expect is not None:
        await _expect(page, step.expect, remembered)
    elif step.remember is not None:
        remembered[step.remember] = await _picture(await _there(page, step.remember))
    elif step.press is not None:
        await page.keyboard.press(step.press)
    elif step.wait is not None:
        await asyncio.sleep(step.wait / 1000)
    elif step.resize is not None:
        width, height = SIZES[step.resize]
        await page.set_viewport_size({"width": width, "height": height})
    else:
        await _handle(page, step)


async def _handle(page: Page, step: Step) -> None:
    """Steps that do something to one element."""
    if step.click is not None:
        await (await _there(page, step.click)).click(timeout=_PATIENCE_MS)
    elif step.double_click is not None:
        await (await _there(page, step.double_click)).dblclick(timeout=_PATIENCE_MS)
    elif step.hover is not None:
        await (await _there(page, step.hover)).hover(timeout=_PATIENCE_MS)
    elif step.type is not None:
        await _type(await _there(page, step.type.into), step.type.text)
    elif step.choose is not None:
        await (await _there(page, step.choose.of)).select_option(step.choose.option, timeout=_PATIENCE_MS)
    elif step.drag is not None:
        onto = await _there(page, step.drag.onto)
        await (await _there(page, step.drag.what)).drag_to(onto, timeout=_PATIENCE_MS)


async def _type(field: Locator, text: str) -> None:
    if await field.get_attribute("type", timeout=_PATIENCE_MS) in _SET_AT_ONCE:
        await field.fill(text, timeout=_PATIENCE_MS)
        return
    await field.fill("", timeout=_PATIENCE_MS)
    await field.press_sequentially(text, timeout=_PATIENCE_MS)


async def _there(page: Page, selector: str) -> Locator:
    """The first visible match, as soon as there is one."""
    from playwright.async_api import TimeoutError as TooLate  # not the built-in one

    found = located(page, selector).first
    try:
        await found.wait_for(state="visible", timeout=_PATIENCE_MS)
    except TooLate:
        raise _FailedError(f"there is no `{selector}` to be seen") from None
    return found


async def _expect(page: Page, expected: Expectation, remembered: dict[str, bytes]) -> None:
    end = time.monotonic() + _PATIENCE_MS / 1000
    while True:
        reason = await _amiss(page, expected, remembered)
        if reason is None:
            return
        if time.monotonic() >= end:
            raise _FailedError(reason)
        await asyncio.sleep(_LOOK_AGAIN)


async def _amiss(page: Page, expected: Expectation, remembered: dict[str, bytes]) -> str | None:
    """What is not as it should be; None where everything is."""
    name, found = f"`{expected.selector}`", located(page, expected.selector)
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
        or await _amiss_in_picture(first, expected, name, remembered)
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
    if expected.matches is not None and not re.search(expected.matches, text):
        return f"{name} says {shown}, which does not match /{expected.matches}/"
    return None


async def _text_of(first: Locator) -> str:
    """As somebody reads it. Not by a script in the page's own world: a page could change what that sees."""
    from playwright.async_api import Error

    try:
        return await first.inner_text(timeout=_PATIENCE_MS)
    except Error:  # what is drawn as SVG has no innerText
        return await first.text_content(timeout=_PATIENCE_MS) or ""


async def _amiss_in_element(first: Locator, expected: Expectation, name: str) -> str | None:
    if expected.value is not None and (found := await first.input_value(timeout=_PATIENCE_MS)) != expected.value:
        return f"{name} holds “{clipped(found, 60)}”, not “{expected.value}”"
    for key, wanted in expected.attribute.items():
        given = await first.get_attribute(key, timeout=_PATIENCE_MS)
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
    from playwright.async_api import expect

    assertion = expect(first)
    try:
        if wanted.startswith("!"):
            await assertion.not_to_have_css(key, wanted[1:], timeout=200)
        else:
            await assertion.to_have_css(key, wanted, timeout=200)
    except AssertionError:
        return False
    return True


def _as_wanted(found: str | None, wanted: str) -> bool:
    """`!value` means anything but that value."""
    return found != wanted[1:] if wanted.startswith("!") else found == wanted


async def _amiss_in_picture(
    first: Locator, expected: Expectation, name: str, remembered: dict[str, bytes]
) -> str | None:
    if expected.differs is not None:
        differs = await _picture(first) != remembered[expected.selector]
        if differs is not expected.differs:
            return f"{name} {'looks different' if differs else 'still looks the same'}"
    if expected.moves is not None:
        moves = await _moves(first)
        if moves is not expected.moves:
            return f"{name} {'moves' if moves else 'does not move'}"
    return None


async def _moves(element: Locator) -> bool:
    before = await _picture(element)
    end = time.monotonic() + _MOVING
    while time.monotonic() < end:
        await asyncio.sleep(4 * _LOOK_AGAIN)
        if await _picture(element) != before:
            return True
    return False


async def _picture(element: Locator) -> bytes:
    return await element.screenshot(timeout=_PATIENCE_MS)
