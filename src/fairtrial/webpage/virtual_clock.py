"""Virtual time: the page's clock advances only with the frames it is given, one after the other.

It needs Chromium's headless shell, the only browser whose frames can be driven from outside. Timers, `Date`,
`performance.now`, `requestAnimationFrame`, CSS animations and transitions then agree, on any machine.
Workers still run in real time. Within a task no time passes: a page that waits in a loop for the clock to change waits
for ever, and has to be rendered in real time.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fairtrial.core.time_limit import time_limit
from fairtrial.webpage.checks import SIZES, Size
from fairtrial.webpage.clock import FRAME_MS, Clock, ScreenArea, in_order
from fairtrial.webpage.world import World

if TYPE_CHECKING:
    from playwright.async_api import Page

ARGUMENTS = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-image-animation-resync",
    "--disable-new-content-rendering-timeout",
)
_EPOCH = 1_767_225_600  # every page starts on the first of January 2026
_MAX_TASKS_AT_ONCE = 1000  # then time advances: some pages never run out of tasks
_LOADING_STEPS = 20  # milliseconds without a frame, so that the first frame shows the whole page
_SYNC_FIRST, _SYNC_EVERY = 8, 8  # advances after which the page's clock is read: the first ones, then every nth
_NAVIGATION_SECONDS = 5.0  # for a page that requested another document
_TINY_STEP_MS = 0.01  # between frames in which no time passes
_PNG = {"format": "png"}


class VirtualClock(Clock):
    """A clock that advances frame by frame under our control."""

    virtual = True

    def __init__(self, page: Page, world: World) -> None:
        super().__init__(page, world)
        self._base = 0.0  # the browser's ticks at the start
        self._elapsed = 0.0
        self._advances = 0  # in this document
        self._expired = asyncio.Event()
        self._arrived = asyncio.Event()
        self._arrived.set()

    async def start(self) -> None:
        """Stop the clock. The page already shows a document of its later address: same process, same clock."""
        session = self.world.session
        session.on("Emulation.virtualTimeBudgetExpired", lambda _: self._expired.set())
        session.on("Page.frameRequestedNavigation", self._navigation_requested)
        for name in ("Page.frameNavigated", "Page.frameStoppedLoading"):
            session.on(name, lambda _: self._arrived.set())
        policy = {"policy": "pause", "initialVirtualTime": _EPOCH}
        self._base = (await self.world.send("Emulation.setVirtualTimePolicy", **policy))["virtualTimeTicksBase"]
        await self._set_screen(self.size)

    def _navigation_requested(self, event: dict[str, Any]) -> None:
        if event.get("disposition", "currentTab") == "currentTab":
            self._arrived.clear()

    @property
    def now(self) -> float:
        return self._elapsed

    async def wait(self, ms: float) -> None:
        for _ in range(max(1, -(-int(ms) // FRAME_MS))):
            await self._frame()

    async def _set_screen(self, size: Size) -> None:
        await super()._set_screen(size)
        width, height = SIZES[size]
        await self.world.send("Emulation.setVisibleSize", width=width, height=height)

    async def input(self, *events: dict[str, Any]) -> None:
        """Send all events at once. A mouse move alone is handled with the next frame, and answered after it."""
        sent = asyncio.ensure_future(
            in_order([self.world.send("Input.dispatchMouseEvent", **event) for event in events])
        )
        if any(event["type"] != "mouseMoved" for event in events):
            await sent
        else:
            await self.world.value("0")
        await self._frame()
        await sent

    async def shot(self, box: ScreenArea) -> bytes:
        """Capture a regular frame: an extra one would be an extra frame for the page too."""
        from PIL import Image

        shown = await self._frame(screenshot={**_PNG, "optimizeForSpeed": True})
        with Image.open(BytesIO(base64.b64decode(shown["screenshotData"]))) as whole:
            return whole.crop((box.x, box.y, box.x + box.width, box.y + box.height)).tobytes()

    async def picture(self, width: int, height: int) -> bytes:
        """Take a screenshot, which may need any number of frames; with scripts disabled the page notices none."""
        await self.world.send("Emulation.setScriptExecutionDisabled", value=True)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taking = asyncio.ensure_future(
            self.world.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip, **_PNG)
        )
        try:
            offset = 0.0
            while not taking.done():
                offset += _TINY_STEP_MS
                await self._begin_frame(self._elapsed + offset)
                await asyncio.wait({taking}, timeout=0.005)
            return base64.b64decode((await taking)["data"])
        finally:
            taking.cancel()
            await self.world.send("Emulation.setScriptExecutionDisabled", value=False)
            await self._set_screen(self.size)

    async def _go(self, url: str) -> None:
        """Navigate from inside the page: otherwise the document would start at the browser's time, not at ours."""
        async with self.page.expect_navigation(wait_until="commit", timeout=0):
            await self.world.value(f"location.replace({url!r})")
        self._advances = 0

    async def _load(self) -> None:
        if self._advances < _LOADING_STEPS:
            await self._advance(1)
        else:
            await self._frame()

    async def _frame(self, **more: Any) -> dict[str, Any]:
        self.frames += 1
        await self._advance(FRAME_MS)
        if not self._arrived.is_set():
            await self._wait_for_navigation()
        shown = await self._begin_frame(self._elapsed, **more)
        self.frames += 1
        return shown

    async def _advance(self, ms: int) -> None:
        self._expired.clear()
        await self.world.send(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=ms,
            maxVirtualTimeTaskStarvationCount=_MAX_TASKS_AT_ONCE,
        )
        await self._expired.wait()
        self._elapsed += ms
        self._advances += 1
        if self._advances <= _SYNC_FIRST or self._advances % _SYNC_EVERY == 0:
            # More time than requested may have passed, mostly after loading; frames must match the page's clock.
            self._elapsed = await self.world.value("Date.now()") - 1000 * _EPOCH

    async def _wait_for_navigation(self) -> None:
        """Wait until a requested document has arrived; time stands still meanwhile."""
        with suppress(TimeoutError):
            async with time_limit(_NAVIGATION_SECONDS):
                await self._arrived.wait()
        self._arrived.set()

    async def _begin_frame(self, at: float, **more: Any) -> dict[str, Any]:
        return await self.world.send(
            "HeadlessExperimental.beginFrame", frameTimeTicks=self._base + at, interval=FRAME_MS, **more
        )
