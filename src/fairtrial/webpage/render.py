"""Rendering pages: a real browser opens each at two sizes, measures it, uses it and takes screenshots.

Each browser shows one page at a time and is killed if the page blocks it, so that no page can affect another one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from fairtrial.webpage.browser import gives_frames, usable_browser
from fairtrial.webpage.browser_process import BrowserProcess
from fairtrial.webpage.checks import Check
from fairtrial.webpage.driver import Driver
from fairtrial.webpage.page_limits import TOO_MUCH_MEMORY
from fairtrial.webpage.rendering import Limits, Rendering
from fairtrial.webpage.visit import Visit


class Renderer:
    """A pool of browsers, started when needed. An async context manager."""

    def __init__(self, browsers: int | None = None, limits: Limits | None = None) -> None:
        self._count = browsers or min(4, 1 + (os.cpu_count() or 1))  # a browser mostly waits
        self._limits = limits or Limits()
        self._driver = Driver()
        self.virtual = False  # whether pages run in virtual time
        self._slots: list[BrowserProcess] = []
        self._free: asyncio.LifoQueue[BrowserProcess] = asyncio.LifoQueue()

    async def __aenter__(self) -> Renderer:
        program = usable_browser()
        self.virtual = gives_frames(program)
        await self._driver.playwright()
        self._slots = [BrowserProcess(self._driver, program, self._limits) for _ in range(self._count)]
        for slot in reversed(self._slots):  # last in, first out: a second browser starts only when needed
            self._free.put_nowait(slot)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(slot.close() for slot in self._slots))
        await self._driver.end()

    async def version(self) -> str:
        """Return the browser's version; start it if necessary."""
        return (await self._slots[0].open(virtual=self.virtual)).version

    async def render(self, html: str, checks: Sequence[Check] = ()) -> Rendering:
        """Render a page and run the checks. This always ends, whatever the page does."""
        slot = await self._free.get()
        try:
            seen = await Visit(slot, html, virtual=self.virtual).run(checks)
            if seen.stalled or seen.trouble not in ("", TOO_MUCH_MEMORY):
                # It may be chance, or the page waits in a loop for a clock that stands still: try in real time.
                seen = await Visit(slot, html, virtual=False).run(checks)
            return seen
        finally:
            self._free.put_nowait(slot)
