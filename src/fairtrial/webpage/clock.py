"""The clock of a page.

Everything that waits for a page, sends it input or takes a screenshot goes through its clock. There are two kinds: in
virtual time (`virtual_clock.py`) a page gets one frame after the other, however long each takes, so that measurements
do not depend on the machine; in real time, here, they do.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fairtrial.webpage.checks import SIZES, Size
from fairtrial.webpage.world import World

if TYPE_CHECKING:
    from playwright.async_api import Page

FRAME_MS = 16
_LOADING_MS = 3000  # time for a page to load completely
_FONTS_MS = 500


class ScreenArea(NamedTuple):
    """A part of the screen, in pixels."""

    x: int
    y: int
    width: int
    height: int


class Clock(ABC):
    """A page and the time in which it runs."""

    virtual: ClassVar[bool]

    def __init__(self, page: Page, world: World) -> None:
        self.page, self.world = page, world
        self.size: Size = "desktop"
        self.mobile = False
        self.frames = 0  # frames begun plus frames ended, in virtual time: odd while one is under way

    @property
    @abstractmethod
    def now(self) -> float:
        """The current time in milliseconds, for computing differences."""

    @abstractmethod
    async def wait(self, ms: float) -> None:
        """Let the page run for this long, at least for one frame."""

    async def switch_device(self, size: Size) -> None:
        """Be the device with a screen of this size: a phone has a finger instead of a mouse, and its own viewport."""
        mobile = size == "phone"
        if mobile != self.mobile:
            self.mobile = mobile
            await self.world.send("Emulation.setTouchEmulationEnabled", enabled=mobile)
        elif size == self.size:
            return
        await self._set_screen(size)

    async def resize(self, size: Size) -> None:
        """Change the screen size of the same device."""
        await self._set_screen(size)
        await self.wait(FRAME_MS)

    async def _set_screen(self, size: Size) -> None:
        self.size = size
        width, height = SIZES[size]
        metrics: dict[str, Any] = {"width": width, "height": height, "screenWidth": width, "screenHeight": height}
        metrics |= {"deviceScaleFactor": 1, "mobile": self.mobile}
        if self.mobile:
            metrics["screenOrientation"] = {"type": "portraitPrimary", "angle": 0}
        await self.world.send("Emulation.setDeviceMetricsOverride", **metrics)

    @abstractmethod
    async def input(self, *events: dict[str, Any]) -> None:
        """Send simultaneous mouse events, then show a frame."""

    @abstractmethod
    async def shot(self, box: ScreenArea) -> bytes:
        """Capture a part of the screen for comparison: equal bytes mean equal pictures."""

    @abstractmethod
    async def picture(self, width: int, height: int) -> bytes:
        """Take a screenshot of the page from its top. Afterwards the page can be measured, but no longer used."""

    @abstractmethod
    async def _go(self, url: str) -> None:
        """Start loading a document."""

    @abstractmethod
    async def _load(self) -> None:
        """Give a document some time to load."""

    async def load(self, url: str, rest_ms: int) -> None:
        """Load a fresh copy of the page, wait until it is complete, and then for `rest_ms`.

        The wait is limited, because a page that tries to navigate away while loading never completes, and stays.
        """
        await self._go(url)
        end = self.now + _LOADING_MS
        while await self.world.value("document.readyState") != "complete" and self.now < end:
            await self._load()
        end = self.now + _FONTS_MS
        while await self.world.value("document.fonts.status") != "loaded" and self.now < end:
            await self.wait(FRAME_MS)
        await self.wait(rest_ms)

    @property
    def screen(self) -> ScreenArea:
        """The visible area."""
        return ScreenArea(0, 0, *SIZES[self.size])


class RealClock(Clock):
    """A clock that runs in real time."""

    virtual = False

    @property
    def now(self) -> float:
        return 1000 * time.monotonic()

    async def wait(self, ms: float) -> None:
        from playwright.async_api import Error

        await asyncio.sleep(max(ms, FRAME_MS) / 1000)
        with suppress(Error):  # lets a busy page finish first; a page that is leaving cannot answer
            await self.world.value("0")

    async def input(self, *events: dict[str, Any]) -> None:
        await in_order([self.world.send("Input.dispatchMouseEvent", **event) for event in events])
        await self.wait(FRAME_MS)

    async def shot(self, box: ScreenArea) -> bytes:
        clip: Any = box._asdict()
        return await self.page.screenshot(clip=clip, scale="css", timeout=0)

    async def picture(self, width: int, height: int) -> bytes:
        clip: Any = {"x": 0, "y": 0, "width": width, "height": height}
        return await self.page.screenshot(full_page=True, clip=clip, animations="disabled", scale="css", timeout=0)

    async def _go(self, url: str) -> None:
        await self.page.goto(url, wait_until="commit", timeout=0)

    async def _load(self) -> None:
        await self.wait(20)


async def in_order(calls: Sequence[Awaitable[Any]]) -> None:
    """Send all calls in order, and only then wait for their answers."""
    await asyncio.gather(*calls)
