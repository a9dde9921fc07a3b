"""One visit to a page: load, measure, use, check and photograph it, each within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.time_limit import time_limit
from fairtrial.text.printable import clipped
from fairtrial.webpage.acting import carry_out
from fairtrial.webpage.browser_process import BrowserProcess
from fairtrial.webpage.checks import SIZES, Check, CheckResult, Size
from fairtrial.webpage.clock import Clock, RealClock
from fairtrial.webpage.page_limits import CRASHED, Watch
from fairtrial.webpage.rendering import Rendering
from fairtrial.webpage.seal import HEADERS, sealed
from fairtrial.webpage.virtual_clock import VirtualClock
from fairtrial.webpage.world import UnmeasurableError, World

if TYPE_CHECKING:
    from playwright.async_api import Route

_URL = "https://page.invalid/"
_BLANK = "https://page.invalid/blank"  # shown before the page, in the same process
_SETTLE_MS = 200
_SLOW_MS = 1500  # extra time for a page that seems blank
_MAX_HEIGHT = 2600  # pixels of a screenshot
_MAX_CONTROLS = 12
_MAX_NOTES = 20  # errors, messages or addresses that are kept
_REACTION_MS = (30, 120, 250, 300)  # waits after a press: the page may react with a timer
# Fixed random numbers in every rendering: the measurements should depend on the page alone.
_FIXED_RANDOM = """
(() => { let seed = 1;
  Math.random = () => { seed = (seed + 0x6d2b79f5) | 0; let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t; return ((t ^ (t >>> 14)) >>> 0) / 4294967296; }; })();
"""


class _TroubleError(Exception):
    """The page cannot be used any more."""


class Visit:
    """One visit to a page; results so far are kept when something goes wrong."""

    def __init__(self, slot: BrowserProcess, html: str, *, virtual: bool) -> None:
        self._slot, self._virtual = slot, virtual
        self._body = sealed(html)
        self._clock: Clock | None = None  # of the tab, once it is open
        self._watch = self._new_watch()
        self.result = Rendering(virtual=virtual)

    def _new_watch(self) -> Watch:
        limits = self._slot.limits
        return Watch(self._slot, min(limits.suspect, limits.busy) if self._virtual else limits.busy)

    async def run(self, checks: Sequence[Check]) -> Rendering:
        result = self.result
        try:
            if await self._within_limits(self._desktop):
                await self._within_limits(self._phone)
                await self._within_limits(self._use)
            for check in checks:
                result.checks.append(await self._run_check(check))
        except asyncio.CancelledError:  # nobody waits for this page any more
            await self._slot.end()
            raise
        finally:
            await self._close()
        result.errors, result.blocked = list(dict.fromkeys(result.errors)), list(dict.fromkeys(result.blocked))
        return result

    async def _close(self) -> None:
        """Close the page; one that does not close is killed with its browser."""
        clock, self._clock = self._clock, None
        if clock is not None:
            try:
                await asyncio.wait_for(clock.page.context.close(), 10)
            except Exception:  # nothing may keep the next page waiting
                await self._slot.end()

    async def _within_limits(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Use the page within its limits; if one is exceeded, kill the browser and record the reason."""
        from playwright.async_api import Error

        await self._slot.open(virtual=self._virtual)
        self._watch = self._new_watch()
        task, violation = asyncio.ensure_future(work()), asyncio.ensure_future(self._watch.violation())
        wall, reason = self._slot.limits.wall, ""
        try:
            with suppress(TimeoutError):
                async with time_limit(wall):
                    await asyncio.wait({task, violation}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            if violation.done():
                reason = violation.result()
            else:
                self.result.stalled = f"the browser made no progress with the page for {wall:.0f} s: try again"
        except (_TroubleError, UnmeasurableError) as error:
            reason = str(error)
        except Error:  # Playwright's message would not help the user
            reason = CRASHED
        finally:
            for future in (task, violation):
                future.cancel()
            await asyncio.gather(task, violation, return_exceptions=True)
        self.result.trouble = self.result.trouble or reason
        self._clock = None
        await self._slot.end()
        return False

    async def _load_page(self, size: Size, rest_ms: int = _SETTLE_MS) -> Clock:
        if self._clock is None:
            self._clock = await self._open_tab()
        clock = self._watch.clock = self._clock
        await clock.switch_device(size)
        await clock.load(_URL, rest_ms)
        return clock

    async def _open_tab(self) -> Clock:
        """Open a tab and return its clock. All copies of the page use it: a sealed one leaves nothing behind."""
        await self._slot.open(virtual=self._virtual)
        width, height = SIZES["desktop"]
        context, name = await self._slot.context(
            viewport={"width": width, "height": height},
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            service_workers="block",
            accept_downloads=False,
        )
        await context.add_init_script(_FIXED_RANDOM)
        await context.route("**/*", self._fulfil)
        page = await self._slot.page(context, name)
        context.on("page", lambda popup: popup.close())
        page.on("crash", lambda _: setattr(self._watch, "crashed", True))
        page.on("pageerror", lambda error: self._note(self.result.errors, str(error)))
        page.on("console", lambda message: self._note_console(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: dialog.dismiss())
        world = World(await context.new_cdp_session(page))
        await world.open()
        await page.goto(_BLANK, wait_until="commit", timeout=0)
        await self._slot.weigh()
        if not self._virtual:
            return RealClock(page, world)
        clock = VirtualClock(page, world)
        await clock.start()
        return clock

    async def _fulfil(self, route: Route) -> None:
        """Serve the page itself and block everything else; a page that was closed meanwhile needs nothing any more."""
        from playwright.async_api import Error  # an extra

        with suppress(Error):
            await self._answer(route)

    async def _answer(self, route: Route) -> None:
        request = route.request
        if request.url in (_URL, _BLANK) and request.is_navigation_request():
            await route.fulfill(body=self._body if request.url == _URL else "", headers=HEADERS)
            return
        self._note(self.result.blocked, request.url)
        if request.is_navigation_request():
            await route.fulfill(status=204)  # no content: the page stays where it is
        else:
            await route.abort()

    def _note_console(self, text: str) -> None:
        """Record a console error, unless it is caused by the seal rather than by the page."""
        if "Content Security Policy" not in text and "net::ERR_FAILED" not in text and "sandbox" not in text:
            self._note(self.result.console, text)

    def _note(self, notes: list[str], text: str) -> None:
        if len(notes) < _MAX_NOTES:
            notes.append(clipped(" ".join(text.split()), 300))

    async def _desktop(self) -> None:
        clock = await self._load_page("desktop")
        facts = await self._measure(clock)
        if facts["blank"]:
            clock, facts = await self._measure_blank(clock)
        self.result.pictures["desktop"] = await self._picture(clock, facts["height"])
        await clock.resize("tablet")
        self.result.tablet_overflow = (await self._measure(clock))["overflow"]["beyond"]
        self.result.desktop = facts

    async def _phone(self) -> None:
        clock = await self._load_page("phone")
        facts = await self._measure(clock)
        self.result.pictures["phone"] = await self._picture(clock, facts["height"])
        self.result.phone = facts

    async def _measure_blank(self, clock: Clock) -> tuple[Clock, dict[str, Any]]:
        """Measure a page that seems blank again: some are slow, and some draw what the document does not show."""
        await clock.wait(_SLOW_MS)
        facts = await self._measure(clock)
        if facts["blank"]:
            shown = await clock.shot(clock.screen)
            await clock.world.value("fairtrial.hide()")
            await clock.wait(0)
            facts["blank"] = await clock.shot(clock.screen) == shown
            clock = await self._load_page("desktop")
        return clock, facts

    async def _use(self) -> None:
        """Press every control in turn, and those that did nothing once more at the end."""
        clock = await self._load_page("desktop")
        count = await clock.world.value(f"fairtrial.controls({_MAX_CONTROLS})")
        await clock.wait(150)
        # If the page moves by itself, the effect of a press cannot be told.
        restless = await clock.world.value("fairtrial.changed()") is not False
        dead: dict[int, str] = {}
        if not restless:
            for number in range(count):
                await self._press(clock, number, dead)
            for number in list(dead):
                await self._press(clock, number, dead)
        examples = list(dead.values())[:5]
        self.result.controls = {"controls": count, "dead": len(dead), "examples": examples, "restless": restless}

    async def _press(self, clock: Clock, number: int, dead: dict[int, str]) -> None:
        """Press one control; one that makes the page reload does something."""
        from playwright.async_api import Error

        dead.pop(number, None)
        try:
            name = await self._press_once(clock, number)
            if name is not None and await clock.world.value("fairtrial.fill()"):  # some controls need typed input
                await clock.wait(60)
                name = await self._press_once(clock, number)
        except (Error, _LeftError):
            name = None
            await self._reload(clock)
        if name is not None:
            dead[number] = name

    async def _press_once(self, clock: Clock, number: int) -> str | None:
        """Press a control and return its name if nothing happens, None if something does or it is gone."""
        name: str | None = await clock.world.value(f"fairtrial.press({number})", gesture=True)
        for wait in _REACTION_MS if name is not None else ():
            await clock.wait(wait)
            changed = await clock.world.value("fairtrial.changed()")
            if changed is None:
                raise _LeftError
            if changed:
                return None
        return name

    async def _reload(self, clock: Clock) -> None:
        """Load the page again after it navigated or reloaded, which may still be under way."""
        from playwright.async_api import Error

        for pause in (300, 700, 1500):
            try:
                await clock.wait(pause)
                await clock.load(_URL, _SETTLE_MS)
                await clock.world.value(f"fairtrial.controls({_MAX_CONTROLS})")
            except Error:
                continue
            return
        raise _TroubleError("the page goes away again and again")

    async def _measure(self, clock: Clock) -> dict[str, Any]:
        await self._scroll_through(clock)
        facts: dict[str, Any] = await clock.world.value("fairtrial.measure()")
        for address in facts.pop("blocked"):
            self._note(self.result.blocked, address)
        return facts

    async def _scroll_through(self, clock: Clock) -> None:
        """Scroll to the end and back: many pages show content only when it comes into view."""
        screen, end = await clock.world.value("fairtrial.reach()")
        if end <= screen:
            return
        for top in range(screen, end, screen):
            await clock.world.value(f"scrollTo(0, {top})")
            await clock.wait(60)
        await clock.world.value("scrollTo(0, 0)")
        await clock.wait(120)

    async def _picture(self, clock: Clock, height: int) -> bytes:
        """Take a screenshot as wide as the screen, even if the page is wider: an endless line would take too long."""
        return await clock.picture(clock.screen.width, min(_MAX_HEIGHT, max(height, clock.screen.height)))

    async def _run_check(self, check: Check) -> CheckResult:
        """Run a check; in real time a failed one is tried again, since the machine may have been busy."""
        result = await self._try_check(check)
        if result.passed or self._virtual or self.result.trouble or self.result.stalled:
            return result
        return await self._try_check(check)

    async def _try_check(self, check: Check) -> CheckResult:
        failed = CheckResult(name=check.name, passed=False, weight=check.weight, reason=self.result.trouble)
        if self.result.desktop is None:  # the page could not even be opened
            return failed
        results: list[CheckResult] = []

        async def work() -> None:
            clock = await self._load_page(check.size, rest_ms=20)  # a check waits for what it expects
            results.append(await carry_out(clock, check))

        before, self.result.trouble = self.result.trouble, ""
        if not await self._within_limits(work):
            results = [msgspec.structs.replace(failed, reason=self.result.trouble)]
        self.result.trouble = before or self.result.trouble
        return results[0]


class _LeftError(Exception):
    """The page shows a different document than before."""
