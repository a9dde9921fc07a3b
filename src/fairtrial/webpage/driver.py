"""Playwright's own program, which drives the browsers: started when needed, and anew where it has gone or hangs."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from fairtrial.core.time_limit import time_limit

if TYPE_CHECKING:
    import psutil
    from playwright.async_api import Playwright

FAREWELL = 3.0  # seconds that a program has to end by itself
_REPLY = 10.0  # seconds for it to do next to nothing


class Driver:
    """The program that drives all browsers of a renderer."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._process: psutil.Process | None = None  # known once it has started a browser
        self._starting = asyncio.Lock()

    async def playwright(self) -> Playwright:
        """Return what commands it, started if necessary."""
        async with self._starting:
            if self._playwright is None:
                from playwright.async_api import async_playwright

                self._playwright, self._process = await async_playwright().start(), None
            return self._playwright

    def has_started(self, browser: psutil.Process) -> None:
        """Know which process it is by a browser that it has started."""
        import psutil

        with suppress(psutil.Error):
            ours = [one for one in (browser, *browser.parents()) if one.ppid() == os.getpid()]
            self._process = ours[0] if ours and ours[0] != browser else self._process

    async def works(self, playwright: Playwright) -> bool:
        """Return whether it still carries out commands."""
        try:
            async with time_limit(_REPLY):
                await (await playwright.request.new_context()).dispose()
        except Exception:  # also one that means nothing else
            return False
        return True

    async def end(self, used: Playwright | None = None) -> None:
        """End it, by force if it must be; not if `used`, which is of no use any more, has been replaced."""
        async with self._starting:
            playwright, process = self._playwright, self._process
            if playwright is None or used not in (None, playwright):
                return
            self._playwright = self._process = None
        with suppress(Exception):  # its errors mean nothing any more
            await asyncio.wait_for(playwright.stop(), FAREWELL)
        if process is not None:
            import psutil

            with suppress(psutil.Error):  # it is gone, as it should be
                process.kill()
