"""Virtual time: the page's clock stands still but for the frames that it is given, one after the other.

It needs Chromium's headless shell, the only one whose frames can be given from outside. Timers, `Date`,
`performance.now`, `requestAnimationFrame`, CSS animations and transitions then agree, on any machine.
Workers run in real time all the same. Inside of a task time does not pass: a page that waits in a loop for the clock
to change waits for ever, and has to be looked at in real time.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fairtrial.webpage.checks import SIZES, Size
from fairtrial.webpage.clock import FRAME_MS, Box, Clock, in_order
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
_EPOCH = 1_767_225_600  # every page lives from the first of January 2026 on
_TASKS_IN_A_MOMENT = 1000  # then time goes on: some pages never run out of tasks
_SOON_LOADED = 20  # times a millisecond without a frame, so that the first frame finds the whole page
_AT_FIRST, _NOW_AND_THEN = 8, 8  # how often the page's clock is looked at
_ARRIVAL = 5.0  # seconds for a page that asked for another document
_THIN_MS = 0.01  # between frames in which no time passes
_PNG = {"format": "png"}


class VirtualClock(Clock):
    """The time that we give."""

    virtual = True

    def __init__(self, page: Page, world: World, *, mobile: bool) -> None:
        super().__init__(page, world, mobile=mobile)
        self._base = 0.0  # the browser's ticks when time began
        self._elapsed = 0.0
        self._advances = 0  # in this document
        self._expired = asyncio.Event()
        self._arrived = asyncio.Event()
        self._arrived.set()

    async def start(self) -> None:
        """Stop the clock. The page already shows something of its later address: same process, same clock."""
        session = self.world.session
        session.on("Emulation.virtualTimeBudgetExpired", lambda _: self._expired.set())
        session.on("Page.frameRequestedNavigation", self._leaves)
        for name in ("Page.frameNavigated", "Page.frameStoppedLoading"):
            session.on(name, lambda _: self._arrived.set())
        policy = {"policy": "pause", "initialVirtualTime": _EPOCH}
        self._base = (await self.world.send("Emulation.setVirtualTimePolicy", **policy))["virtualTimeTicksBase"]
        await self._screen()

    def _leaves(self, event: dict[str, Any]) -> None:
        if event.get("disposition", "currentTab") == "currentTab":
            self._arrived.clear()

    @property
    def now(self) -> float:
        return self._elapsed

    async def wait(self, ms: float) -> None:
        for _ in range(max(1, -(-int(ms) // FRAME_MS))):
            await self._frame()

    async def resize(self, size: Size) -> None:
        self.size = size
        await self._screen()
        await self._frame()

    async def input(self, *events: dict[str, Any]) -> None:
        """All in one moment. A mouse that only moves is noticed with the next frame, and answers after it."""
        sent = asyncio.ensure_future(
            in_order([self.world.send("Input.dispatchMouseEvent", **event) for event in events])
        )
        if any(event["type"] != "mouseMoved" for event in events):
            await sent
        else:
            await self.world.value("0")
        await self._frame()
        await sent

    async def shot(self, box: Box) -> bytes:
        """Of a regular frame: one more would be one more for the page too."""
        from PIL import Image

        shown = await self._frame(screenshot={**_PNG, "optimizeForSpeed": True})
        with Image.open(BytesIO(base64.b64decode(shown["screenshotData"]))) as whole:
            return whole.crop((box.x, box.y, box.x + box.width, box.y + box.height)).tobytes()

    async def picture(self, width: int, height: int) -> bytes:
        """Beyond the screen it takes several frames, nobody knows how many: without scripts the page notices none."""
        await self.world.send("Emulation.setScriptExecutionDisabled", value=True)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taking = asyncio.ensure_future(
            self.world.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip, **_PNG)
        )
        try:
            thin = 0.0
            while not taking.done():
                thin += _THIN_MS
                await self._begin_frame(self._elapsed + thin)
                await asyncio.wait({taking}, timeout=0.005)
            return base64.b64decode((await taking)["data"])
        finally:
            taking.cancel()
            await self.world.send("Emulation.setScriptExecutionDisabled", value=False)
            await self._screen()

    async def _go(self, url: str) -> None:
        """From inside of the page: a document that the browser asks for begins at the browser's time, not at ours."""
        async with self.page.expect_navigation(wait_until="commit", timeout=0):
            await self.world.value(f"location.replace({url!r})")
        self._advances = 0

    async def _load(self) -> None:
        if self._advances < _SOON_LOADED:
            await self._advance(1)
        else:
            await self._frame()

    async def _frame(self, **more: Any) -> dict[str, Any]:
        """Time for one frame, and the frame."""
        self.frames += 1
        await self._advance(FRAME_MS)
        if not self._arrived.is_set():
            await self._arrival()
        shown = await self._begin_frame(self._elapsed, **more)
        self.frames += 1
        return shown

    async def _advance(self, ms: int) -> None:
        self._expired.clear()
        await self.world.send(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=ms,
            maxVirtualTimeTaskStarvationCount=_TASKS_IN_A_MOMENT,
        )
        await self._expired.wait()
        self._elapsed += ms
        self._advances += 1
        if self._advances <= _AT_FIRST or self._advances % _NOW_AND_THEN == 0:
            # More may have passed than was asked for, after loading above all; frames must agree with the page's clock.
            self._elapsed = await self.world.value("Date.now()") - 1000 * _EPOCH

    async def _arrival(self) -> None:
        """Time stands still while the page is on its way to another document."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), _ARRIVAL)
        self._arrived.set()

    async def _begin_frame(self, at: float, **more: Any) -> dict[str, Any]:
        return await self.world.send(
            "HeadlessExperimental.beginFrame", frameTimeTicks=self._base + at, interval=FRAME_MS, **more
        )

    async def _screen(self) -> None:
        """The screen as the page has to see it."""
        width, height = SIZES[self.size]
        metrics: dict[str, Any] = {"width": width, "height": height, "screenWidth": width, "screenHeight": height}
        metrics |= {"deviceScaleFactor": 1, "mobile": self.mobile}
        if self.mobile:
            metrics["screenOrientation"] = {"type": "portraitPrimary", "angle": 0}
        await self.world.send("Emulation.setDeviceMetricsOverride", **metrics)
        await self.world.send("Emulation.setVisibleSize", width=width, height=height)
