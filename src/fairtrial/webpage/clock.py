"""The time in which a page lives.

Everything that waits for a page, gives it input or takes its picture asks its clock. There are two: in virtual time
(`virtual_clock.py`) a page gets one frame after the other, however long each takes, so that what is measured does not
depend on the machine; in real time, here, it does.
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
_LOADING_MS = 3000  # for a page to be complete
_FONTS_MS = 500


class Box(NamedTuple):
    """A part of the screen, in pixels."""

    x: int
    y: int
    width: int
    height: int


class Clock(ABC):
    """One page and its time."""

    virtual: ClassVar[bool]

    def __init__(self, page: Page, world: World, *, mobile: bool) -> None:
        self.page, self.world, self.mobile = page, world, mobile
        self.size: Size = "phone" if mobile else "desktop"
        self.frames = 0  # begun and ended, in virtual time: an odd number is one under way

    @property
    @abstractmethod
    def now(self) -> float:
        """Milliseconds, for differences."""

    @abstractmethod
    async def wait(self, ms: float) -> None:
        """Let the page live for so long, and at least for one frame."""

    @abstractmethod
    async def resize(self, size: Size) -> None:
        """Another screen."""

    @abstractmethod
    async def input(self, *events: dict[str, Any]) -> None:
        """What a mouse does in one moment, and a frame in which it can be seen."""

    @abstractmethod
    async def shot(self, box: Box) -> bytes:
        """What is seen in a part of the screen, to be compared: the same bytes are the same picture."""

    @abstractmethod
    async def picture(self, width: int, height: int) -> bytes:
        """The page from its top, as long as asked for. A page is still to be measured after it, but not to be used."""

    @abstractmethod
    async def _go(self, url: str) -> None:
        """Begin to show a document."""

    @abstractmethod
    async def _load(self) -> None:
        """Let a document get on with loading."""

    async def load(self, url: str, rest_ms: int) -> None:
        """Show a fresh copy of the page, until it is complete and had some rest.

        It is not waited for in one go: a page that wants to leave while it loads is never complete, and stays.
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
    def screen(self) -> Box:
        """All that can be seen at once."""
        return Box(0, 0, *SIZES[self.size])


class RealClock(Clock):
    """The time that everybody has."""

    virtual = False

    @property
    def now(self) -> float:
        return 1000 * time.monotonic()

    async def wait(self, ms: float) -> None:
        from playwright.async_api import Error

        await asyncio.sleep(max(ms, FRAME_MS) / 1000)
        with suppress(Error):  # a page that is busy has its turn first; one that is leaving has none
            await self.world.value("0")

    async def resize(self, size: Size) -> None:
        self.size = size
        width, height = SIZES[size]
        await self.page.set_viewport_size({"width": width, "height": height})
        await self.wait(FRAME_MS)

    async def input(self, *events: dict[str, Any]) -> None:
        await in_order([self.world.send("Input.dispatchMouseEvent", **event) for event in events])
        await self.wait(FRAME_MS)

    async def shot(self, box: Box) -> bytes:
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
    """Send all, one behind the other, and only then wait for what is said to them."""
    await asyncio.gather(*calls)
