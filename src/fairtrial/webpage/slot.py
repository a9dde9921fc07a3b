"""One browser, and the way to be rid of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from fairtrial.core.text import clipped
from fairtrial.webpage.browser import ARGUMENTS, NoBrowserError, sandboxed
from fairtrial.webpage.rendering import Limits

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Playwright


class Slot:
    """One browser, and the way to be rid of it."""

    def __init__(self, playwright: Playwright, program: str, limits: Limits) -> None:
        self._playwright, self._program, self._limits = playwright, program, limits
        self._browser: Browser | None = None
        self._system: CDPSession | None = None
        self._pid = 0

    async def open(self) -> Browser:
        """The browser, started if need be."""
        from playwright.async_api import Error

        if self._browser is not None and self._browser.is_connected():
            return self._browser
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=self._program, args=list(ARGUMENTS), chromium_sandbox=sandboxed()
            )
        except Error as error:
            hint = "; FAIRTRIAL_BROWSER_SANDBOX=off starts it without its sandbox" if sandboxed() else ""
            reason = clipped(str(error).split("\n")[0], 200)
            raise NoBrowserError(f"{self._program} does not start ({reason}){hint}") from None
        self._system = await self._browser.new_browser_cdp_session()
        self._pid = next((pid for kind, pid in await self._processes() if kind == "browser"), 0)
        return self._browser

    async def _processes(self) -> list[tuple[str, int]]:
        assert self._system is not None
        found = await self._system.send("SystemInfo.getProcessInfo")
        return [(process["type"], process["id"]) for process in found["processInfo"]]

    async def overfull(self) -> None:
        """Come back when the pages have taken more memory than they may."""
        import psutil
        from playwright.async_api import Error

        while True:
            await asyncio.sleep(0.1)
            taken = 0
            try:
                processes = await self._processes()
            except Error:  # it is going: whoever works with it will notice
                continue
            for kind, pid in processes:
                if kind == "renderer":
                    with suppress(psutil.Error):
                        taken += psutil.Process(pid).memory_info().rss
            if taken > self._limits.memory:
                return

    async def end(self) -> None:
        """End the browser at once, with everything that it shows."""
        import psutil

        with suppress(psutil.Error):
            browser = psutil.Process(self._pid)
            for process in (*browser.children(recursive=True), browser):
                with suppress(psutil.Error):
                    process.kill()
        await self._forget()

    async def close(self) -> None:
        """End the browser as it should be ended."""
        if self._browser is not None:
            try:
                await asyncio.wait_for(self._browser.close(), 5)
                self._browser = None
            except Exception:  # a browser that does not close is ended
                await self.end()

    async def _forget(self) -> None:
        browser, self._browser, self._pid = self._browser, None, 0
        if browser is not None:
            with suppress(Exception):  # it has just been killed: whatever it says now means nothing
                await asyncio.wait_for(browser.close(), 5)
