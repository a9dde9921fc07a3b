"""One page, looked at from all sides: loaded, measured, used, checked and photographed, each within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.text import clipped
from fairtrial.webpage.acting import carry_out, patience
from fairtrial.webpage.checks import SIZES, Check, CheckResult, Size
from fairtrial.webpage.rendering import Limits, Rendering
from fairtrial.webpage.seal import HEADERS, sealed
from fairtrial.webpage.slot import Slot

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page, Route

_URL = "https://page.invalid/"
_WORLD = "fairtrial"
_SETTLE_MS = 200
_SLOW = 1.5  # seconds that a page without anything to see is given
# Everything but the ground: if that makes no difference, there was nothing to see.
_HIDDEN = """body *, body::before, body::after { visibility: hidden !important }
body { color: transparent !important; -webkit-text-fill-color: transparent !important; text-shadow: none !important }"""
_TALLEST = 2600  # pixels of a picture
_MOST_CONTROLS = 12
_MOST_SAID = 20  # errors that are kept
# The same luck in every rendering: what is measured should depend on the page alone.
_LUCK = """
(() => { let seed = 1;
  Math.random = () => { seed = (seed + 0x6d2b79f5) | 0; let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t; return ((t ^ (t >>> 14)) >>> 0) / 4294967296; }; })();
"""


class _TroubleError(Exception):
    """The page cannot be worked with any more."""


class Visit:
    """One page, looked at from all sides; what is known is kept when something goes wrong."""

    def __init__(self, slot: Slot, html: str, limits: Limits) -> None:
        self._slot, self._limits = slot, limits
        self._body = sealed(html)
        self._stages: dict[bool, tuple[BrowserContext, Page, CDPSession]] = {}  # by whether it is a phone
        self.found = Rendering()

    async def run(self, checks: Sequence[Check]) -> Rendering:
        found = self.found
        try:
            if await self._guarded(self._desktop, 2 * self._limits.load):
                await self._guarded(self._phone, 2 * self._limits.load)
                await self._guarded(self._use, self._limits.load + self._limits.use)
            for check in checks:
                found.checks.append(await self._checked(check))
        finally:
            await self._leave()
        found.errors, found.blocked = list(dict.fromkeys(found.errors)), list(dict.fromkeys(found.blocked))
        return found

    async def _leave(self) -> None:
        """Close what is open; a page that does not go is gone with its browser."""
        for context, _, _ in self._stages.values():
            try:
                await asyncio.wait_for(context.close(), 3)
            except Exception:  # whatever keeps it from closing must not keep the next page waiting
                await self._slot.end()
        self._stages.clear()

    async def _guarded(self, work: Callable[[], Awaitable[None]], seconds: float) -> bool:
        """Do something with the page within limits; if they do not hold, the browser goes, and the reason stays."""
        from playwright.async_api import Error

        await self._slot.open()
        task = asyncio.ensure_future(work())
        full = asyncio.ensure_future(self._slot.overfull())
        try:
            await asyncio.wait({task, full}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            reason = "the page took too much memory" if full.done() else "the page does not answer: an endless loop?"
        except _TroubleError as error:
            reason = str(error)
        except Error:  # what Playwright says of it is not for people
            reason = "the page crashed, or went away while it was looked at"
        finally:
            for one in (task, full):
                one.cancel()
            await asyncio.gather(task, full, return_exceptions=True)
        self.found.trouble = self.found.trouble or reason
        self._stages.clear()
        await self._slot.end()
        return False

    async def _opened(self, size: Size, rest_ms: int = _SETTLE_MS) -> tuple[Page, CDPSession]:
        """A fresh copy of the page, loaded and settled."""
        from playwright.async_api import TimeoutError as TooLate

        page, world = await self._stage(size)
        try:
            async with asyncio.timeout(self._limits.load):
                # Not until it is loaded: a page that wants to leave while it loads never is, and stays all the same.
                await page.goto(_URL, wait_until="commit")
                await _evaluated(world, f"fairtrial.settled({rest_ms})")
        except (TimeoutError, TooLate):
            raise _TroubleError("the page does not come to rest: an endless loop?") from None
        return page, world

    async def _stage(self, size: Size) -> tuple[Page, CDPSession]:
        """Where the page is shown. It can be used again: a sealed page leaves nothing behind but its document."""
        phone = size == "phone"
        width, height = SIZES[size]
        if phone not in self._stages:
            browser = await self._slot.open()
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                is_mobile=phone,
                has_touch=phone,
                locale="en-US",
                timezone_id="UTC",
                color_scheme="light",
                service_workers="block",
                accept_downloads=False,
            )
            page = await self._page(context)
            world = await context.new_cdp_session(page)
            await world.send("Page.enable")
            probes = {"source": _probes(), "worldName": _WORLD}
            await world.send("Page.addScriptToEvaluateOnNewDocument", probes)
            self._stages[phone] = context, page, world
        _, page, world = self._stages[phone]
        await page.set_viewport_size({"width": width, "height": height})
        return page, world

    async def _page(self, context: BrowserContext) -> Page:
        await context.add_init_script(_LUCK)
        await context.route("**/*", self._answer)
        page = await context.new_page()
        context.on("page", lambda other: other.close())
        page.on("pageerror", lambda error: self._note(self.found.errors, str(error)))
        page.on("console", lambda said: self._said(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: dialog.dismiss())
        return page

    async def _answer(self, route: Route) -> None:
        """The page itself, and nothing else."""
        request = route.request
        if request.url == _URL and request.is_navigation_request():
            await route.fulfill(body=self._body, headers=HEADERS)
            return
        self._note(self.found.blocked, request.url)
        if request.is_navigation_request():
            await route.fulfill(status=204)  # no content: the page stays where it is
        else:
            await route.abort()

    def _said(self, text: str) -> None:
        """What the seal itself makes the browser complain about is no error of the page."""
        if "Content Security Policy" not in text and "net::ERR_FAILED" not in text and "sandbox" not in text:
            self._note(self.found.console, text)

    def _note(self, notes: list[str], text: str) -> None:
        if len(notes) < _MOST_SAID:
            notes.append(clipped(" ".join(text.split()), 300))

    async def _desktop(self) -> None:
        page, world = await self._opened("desktop")
        facts = await self._measured(world)
        if facts["blank"]:
            facts = await self._looked_again(page, world)
        self.found.pictures["desktop"] = await self._picture(page, facts["height"])
        width, height = SIZES["tablet"]
        await page.set_viewport_size({"width": width, "height": height})
        self.found.tablet_overflow = (await self._measured(world))["overflow"]["beyond"]
        self.found.desktop = facts

    async def _phone(self) -> None:
        page, world = await self._opened("phone")
        facts = await self._measured(world)
        self.found.pictures["phone"] = await self._picture(page, facts["height"])
        self.found.phone = facts

    async def _looked_again(self, page: Page, world: CDPSession) -> dict[str, Any]:
        """A page that seems blank: some are slow, and some are drawn in ways that a document does not tell."""
        await asyncio.sleep(_SLOW)
        facts = await self._measured(world)
        if facts["blank"]:
            shown = await page.screenshot(animations="disabled")
            await page.add_style_tag(content=_HIDDEN)
            facts["blank"] = await page.screenshot(animations="disabled") == shown
            await self._opened("desktop")
        return facts

    async def _use(self) -> None:
        """Press whatever can be pressed, one after the other, and those that did nothing once more in the end."""
        _, world = await self._opened("desktop")
        found = await _evaluated(world, f"fairtrial.controls({_MOST_CONTROLS})")
        dead: dict[int, str] = {}
        if not found["restless"]:
            for number in range(found["count"]):
                await self._press(number, dead)
            for number in list(dead):
                await self._press(number, dead)
        self.found.controls = {
            "controls": found["count"],
            "dead": len(dead),
            "examples": list(dead.values())[:5],
            "restless": found["restless"],
        }

    async def _back_again(self) -> None:
        """The page anew, after it went elsewhere or began to load again: that may still be under way."""
        from playwright.async_api import Error

        for pause in (0.3, 0.7, 1.5):
            await asyncio.sleep(pause)
            with suppress(Error):
                _, world = await self._opened("desktop")
                await _evaluated(world, f"fairtrial.controls({_MOST_CONTROLS})")
                return
        raise _TroubleError("the page goes away again and again")

    async def _press(self, number: int, dead: dict[int, str]) -> None:
        """Press one control. One that makes the page load anew surely does something."""
        from playwright.async_api import Error

        _, world = await self._stage("desktop")
        try:
            name = await _evaluated(world, f"fairtrial.press({number})", gesture=True)
        except Error:
            name = None
            await self._back_again()
        dead.pop(number, None)
        if name is not None:
            dead[number] = name

    async def _measured(self, world: CDPSession) -> dict[str, Any]:
        await _evaluated(world, "fairtrial.scrolled()")
        facts: dict[str, Any] = await _evaluated(world, "fairtrial.measure()")
        for address in facts.pop("blocked"):
            self._note(self.found.blocked, address)
        return facts

    async def _picture(self, page: Page, height: int) -> bytes:
        """As wide as the screen, also where the page is wider: a line without end would take too long to draw."""
        size = page.viewport_size or dict(zip(("width", "height"), SIZES["desktop"], strict=True))
        shown = {"x": 0, "y": 0, "width": size["width"], "height": min(_TALLEST, max(height, size["height"]))}
        return await page.screenshot(
            full_page=True,
            clip=shown,  # type: ignore[arg-type]  # a mapping of these keys
            animations="disabled",
            scale="css",
            timeout=1000 * self._limits.measure,
        )

    async def _checked(self, check: Check) -> CheckResult:
        failed = CheckResult(name=check.name, passed=False, weight=check.weight, reason=self.found.trouble)
        if self.found.desktop is None:  # it could not even be opened
            return failed
        results: list[CheckResult] = []

        async def work() -> None:
            page, _ = await self._opened(check.size, rest_ms=20)  # a check waits for what it expects
            results.append(await carry_out(page, check))

        before, self.found.trouble = self.found.trouble, ""
        if not await self._guarded(work, self._limits.load + patience(check)):
            results = [msgspec.structs.replace(failed, reason=self.found.trouble)]
        self.found.trouble = before or self.found.trouble
        return results[0]


@cache
def _probes() -> str:
    return (Path(__file__).parent / "probes.js").read_text("utf-8")


async def _evaluated(world: CDPSession, expression: str, *, gesture: bool = False) -> Any:
    """The value of an expression in the world that the page cannot see."""
    tree = await world.send("Page.getFrameTree")
    frame = tree["frameTree"]["frame"]["id"]
    made = await world.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": _WORLD})
    told = await world.send(
        "Runtime.evaluate",
        {
            "expression": expression,
            "contextId": made["executionContextId"],
            "returnByValue": True,
            "awaitPromise": True,
            "userGesture": gesture,
        },
    )
    if "exceptionDetails" in told:
        raise _TroubleError(f"the page cannot be measured: {told['exceptionDetails'].get('text', '')}")
    return told["result"]["value"]
