"""One page, looked at from all sides: loaded, measured, used, checked and photographed, each within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.text import clipped
from fairtrial.webpage.acting import carry_out
from fairtrial.webpage.browser_process import BrowserProcess
from fairtrial.webpage.checks import SIZES, Check, CheckResult, Size
from fairtrial.webpage.clock import Clock, RealClock
from fairtrial.webpage.rendering import Rendering
from fairtrial.webpage.seal import HEADERS, sealed
from fairtrial.webpage.virtual_clock import VirtualClock
from fairtrial.webpage.watch import CRASHED, Watch
from fairtrial.webpage.world import UnmeasurableError, World

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

_URL = "https://page.invalid/"
_BLANK = "https://page.invalid/blank"  # what is shown before the page, in the same process
_SETTLE_MS = 200
_SLOW_MS = 1500  # that a page without anything to see is given
_TALLEST = 2600  # pixels of a picture
_MOST_CONTROLS = 12
_MOST_SAID = 20  # errors that are kept
_ANSWER_MS = (30, 120, 250, 300)  # after a press: a timer may be at work
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

    def __init__(self, slot: BrowserProcess, html: str, *, virtual: bool) -> None:
        self._slot, self._virtual = slot, virtual
        self._body = sealed(html)
        self._stages: dict[bool, tuple[BrowserContext, Clock]] = {}  # by whether it is a phone
        self._watch = self._new_watch()
        self.found = Rendering(virtual=virtual)

    def _new_watch(self) -> Watch:
        limits = self._slot.limits
        return Watch(self._slot, min(limits.suspect, limits.busy) if self._virtual else limits.busy)

    async def run(self, checks: Sequence[Check]) -> Rendering:
        found = self.found
        try:
            if await self._guarded(self._desktop):
                await self._guarded(self._phone)
                await self._guarded(self._use)
            for check in checks:
                found.checks.append(await self._checked(check))
        finally:
            await self._leave()
        found.errors, found.blocked = list(dict.fromkeys(found.errors)), list(dict.fromkeys(found.blocked))
        return found

    async def _leave(self) -> None:
        """Close what is open; a page that does not go is gone with its browser."""
        for context, _ in self._stages.values():
            try:
                await asyncio.wait_for(context.close(), 10)
            except Exception:  # whatever keeps it from closing must not keep the next page waiting
                await self._slot.end()
        self._stages.clear()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do something with the page within limits; if they do not hold, the browser goes, and the reason stays."""
        from playwright.async_api import Error

        await self._slot.open(virtual=self._virtual)
        self._watch = self._new_watch()
        task, broken = asyncio.ensure_future(work()), asyncio.ensure_future(self._watch.broken())
        wall, reason = self._slot.limits.wall, ""
        try:
            await asyncio.wait({task, broken}, timeout=wall, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            if broken.done():
                reason = broken.result()
            else:
                self.found.stalled = f"the browser did not get on with the page for {wall:.0f} s: try again"
        except (_TroubleError, UnmeasurableError) as error:
            reason = str(error)
        except Error:  # what Playwright says of it is not for people
            reason = CRASHED
        finally:
            for one in (task, broken):
                one.cancel()
            await asyncio.gather(task, broken, return_exceptions=True)
        self.found.trouble = self.found.trouble or reason
        self._stages.clear()
        await self._slot.end()
        return False

    async def _opened(self, size: Size, rest_ms: int = _SETTLE_MS) -> Clock:
        """A fresh copy of the page, loaded and settled."""
        clock = await self._stage(size)
        await clock.load(_URL, rest_ms)
        return clock

    async def _stage(self, size: Size) -> Clock:
        """Where the page is shown. It can be used again: a sealed page leaves nothing behind but its document."""
        phone = size == "phone"
        if phone not in self._stages:
            self._stages[phone] = await self._new_stage(phone=phone)
        _, clock = self._stages[phone]
        self._watch.clock = clock
        if clock.size != size:
            await clock.resize(size)
        return clock

    async def _new_stage(self, *, phone: bool) -> tuple[BrowserContext, Clock]:
        await self._slot.open(virtual=self._virtual)
        width, height = SIZES["phone" if phone else "desktop"]
        context, name = await self._slot.context(
            viewport={"width": width, "height": height},
            is_mobile=phone,
            has_touch=phone,
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            service_workers="block",
            accept_downloads=False,
        )
        await context.add_init_script(_LUCK)
        await context.route("**/*", self._answer)
        page = await self._slot.page(context, name)
        context.on("page", lambda other: other.close())
        page.on("crash", lambda _: self._crashed())
        page.on("pageerror", lambda error: self._note(self.found.errors, str(error)))
        page.on("console", lambda said: self._said(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: dialog.dismiss())
        world = World(await context.new_cdp_session(page))
        await world.open()
        await page.goto(_BLANK, wait_until="commit", timeout=0)
        await self._slot.weigh()
        if not self._virtual:
            return context, RealClock(page, world, mobile=phone)
        clock = VirtualClock(page, world, mobile=phone)
        await clock.start()
        return context, clock

    def _crashed(self) -> None:
        self._watch.crashed = True

    async def _answer(self, route: Route) -> None:
        """The page itself, and nothing else."""
        request = route.request
        if request.url in (_URL, _BLANK) and request.is_navigation_request():
            await route.fulfill(body=self._body if request.url == _URL else "", headers=HEADERS)
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
        clock = await self._opened("desktop")
        facts = await self._measured(clock)
        if facts["blank"]:
            clock, facts = await self._looked_again(clock)
        self.found.pictures["desktop"] = await self._picture(clock, facts["height"])
        await clock.resize("tablet")
        self.found.tablet_overflow = (await self._measured(clock))["overflow"]["beyond"]
        self.found.desktop = facts

    async def _phone(self) -> None:
        clock = await self._opened("phone")
        facts = await self._measured(clock)
        self.found.pictures["phone"] = await self._picture(clock, facts["height"])
        self.found.phone = facts

    async def _looked_again(self, clock: Clock) -> tuple[Clock, dict[str, Any]]:
        """A page that seems blank: some are slow, and some are drawn in ways that a document does not tell."""
        await clock.wait(_SLOW_MS)
        facts = await self._measured(clock)
        if facts["blank"]:
            shown = await clock.shot(clock.screen)
            await clock.world.value("fairtrial.hide()")
            await clock.wait(0)
            facts["blank"] = await clock.shot(clock.screen) == shown
            clock = await self._opened("desktop")
        return clock, facts

    async def _use(self) -> None:
        """Press whatever can be pressed, one after the other, and those that did nothing once more in the end."""
        clock = await self._opened("desktop")
        count = await clock.world.value(f"fairtrial.controls({_MOST_CONTROLS})")
        await clock.wait(150)
        # If it moves by itself, nobody can tell what a press does.
        restless = await clock.world.value("fairtrial.changed()") is not False
        dead: dict[int, str] = {}
        if not restless:
            for number in range(count):
                await self._press(clock, number, dead)
            for number in list(dead):
                await self._press(clock, number, dead)
        examples = list(dead.values())[:5]
        self.found.controls = {"controls": count, "dead": len(dead), "examples": examples, "restless": restless}

    async def _press(self, clock: Clock, number: int, dead: dict[int, str]) -> None:
        """Press one control. One that makes the page load anew surely does something."""
        from playwright.async_api import Error

        dead.pop(number, None)
        try:
            name = await self._pressed(clock, number)
            if name is not None and await clock.world.value("fairtrial.fill()"):  # some work on what was typed
                await clock.wait(60)
                name = await self._pressed(clock, number)
        except (Error, _LeftError):
            name = None
            await self._back_again(clock)
        if name is not None:
            dead[number] = name

    async def _pressed(self, clock: Clock, number: int) -> str | None:
        """Its name if nothing at all happens, None if something does or it is gone."""
        name: str | None = await clock.world.value(f"fairtrial.press({number})", gesture=True)
        for wait in _ANSWER_MS if name is not None else ():
            await clock.wait(wait)
            changed = await clock.world.value("fairtrial.changed()")
            if changed is None:
                raise _LeftError
            if changed:
                return None
        return name

    async def _back_again(self, clock: Clock) -> None:
        """The page anew, after it went elsewhere or began to load again: that may still be under way."""
        from playwright.async_api import Error

        for pause in (300, 700, 1500):
            try:
                await clock.wait(pause)
                await clock.load(_URL, _SETTLE_MS)
                await clock.world.value(f"fairtrial.controls({_MOST_CONTROLS})")
            except Error:
                continue
            return
        raise _TroubleError("the page goes away again and again")

    async def _measured(self, clock: Clock) -> dict[str, Any]:
        await self._scrolled(clock)
        facts: dict[str, Any] = await clock.world.value("fairtrial.measure()")
        for address in facts.pop("blocked"):
            self._note(self.found.blocked, address)
        return facts

    async def _scrolled(self, clock: Clock) -> None:
        """Down to the end and back: many pages show things only when they come into view."""
        screen, end = await clock.world.value("fairtrial.reach()")
        if end <= screen:
            return
        for top in range(screen, end, screen):
            await clock.world.value(f"scrollTo(0, {top})")
            await clock.wait(60)
        await clock.world.value("scrollTo(0, 0)")
        await clock.wait(120)

    async def _picture(self, clock: Clock, height: int) -> bytes:
        """As wide as the screen, also where the page is wider: a line without end would take too long to draw."""
        return await clock.picture(clock.screen.width, min(_TALLEST, max(height, clock.screen.height)))

    async def _checked(self, check: Check) -> CheckResult:
        """How a check goes; in real time one that fails has another chance, since the machine may have been busy."""
        result = await self._tried(check)
        if result.passed or self._virtual or self.found.trouble or self.found.stalled:
            return result
        return await self._tried(check)

    async def _tried(self, check: Check) -> CheckResult:
        failed = CheckResult(name=check.name, passed=False, weight=check.weight, reason=self.found.trouble)
        if self.found.desktop is None:  # it could not even be opened
            return failed
        results: list[CheckResult] = []

        async def work() -> None:
            clock = await self._opened(check.size, rest_ms=20)  # a check waits for what it expects
            results.append(await carry_out(clock, check))

        before, self.found.trouble = self.found.trouble, ""
        if not await self._guarded(work):
            results = [msgspec.structs.replace(failed, reason=self.found.trouble)]
        self.found.trouble = before or self.found.trouble
        return results[0]


class _LeftError(Exception):
    """The page shows another document than before."""
