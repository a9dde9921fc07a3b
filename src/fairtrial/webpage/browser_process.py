"""A browser process: start it, measure its usage and end it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from fairtrial.core.time_limit import time_limit
from fairtrial.text.printable import clipped
from fairtrial.webpage import virtual_clock
from fairtrial.webpage.browser import ARGUMENTS, NoBrowserError, sandboxed
from fairtrial.webpage.driver import FAREWELL, Driver
from fairtrial.webpage.rendering import Limits

if TYPE_CHECKING:
    import psutil
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

_START = 120.0  # seconds
_TRIES = 2  # the second one if the browser or its driver hangs, or the driver has gone
_MARK = "--fairtrial-start="  # which browsers ignore; it says which start of which browser a process comes from


class BrowserUsage(NamedTuple):
    """The resources a browser has used: seconds of processor time, and the private bytes of its page."""

    processor: float
    memory: int


class BrowserProcess:
    """A browser that can be started and ended. It runs in virtual or in real time, never in both."""

    def __init__(self, driver: Driver, program: str, limits: Limits) -> None:
        self._driver, self._program, self.limits = driver, program, limits
        self._browser: Browser | None = None
        self._system: CDPSession | None = None
        self._process: psutil.Process | None = None
        self._mark = ""  # of its last start
        self._virtual = False
        self._empty: int | None = None  # memory of an empty page

    async def open(self, *, virtual: bool = False) -> Browser:
        """Return the browser, started if necessary."""
        if self._browser is not None and self._browser.is_connected():
            if virtual is self._virtual:
                return self._browser
            await self.close()
        self._virtual, self._empty = virtual, None
        for _ in range(_TRIES):
            playwright = await self._driver.playwright()
            try:
                async with time_limit(_START):
                    return await self._start(playwright)
            except Exception as error:  # of Playwright, or of its driver
                reason = f"not within {_START:g} s" if isinstance(error, TimeoutError) else str(error).split("\n")[0]
                await self.end()
                if not await self._driver.works(playwright):
                    await self._driver.end(playwright)
                elif not isinstance(error, TimeoutError):  # it would say the same again
                    break
        hint = "; FAIRTRIAL_BROWSER_SANDBOX=off starts it without its sandbox" if sandboxed() else ""
        raise NoBrowserError(f"{self._program} did not start ({clipped(reason, 200)}){hint}")

    async def _start(self, playwright: Playwright) -> Browser:
        self._mark = _MARK + token_hex(8)
        extra = (self._mark, *(virtual_clock.ARGUMENTS if self._virtual else ()))
        self._browser = await playwright.chromium.launch(
            executable_path=self._program, args=[*ARGUMENTS, *extra], chromium_sandbox=sandboxed(), timeout=0
        )
        self._system = await self._browser.new_browser_cdp_session()
        self._process = await self._own_process()
        if self._process is not None:
            self._driver.has_started(self._process)
        return self._browser

    async def _own_process(self) -> psutil.Process | None:
        """Return the browser's process, identified also by its start time because process ids are reused."""
        import psutil

        pids = [process["id"] for process in await self._processes() if process["type"] == "browser"]
        try:
            return psutil.Process(pids[0])
        except (IndexError, psutil.Error):
            return None

    async def context(self, **options: Any) -> tuple[BrowserContext, str]:
        """Return a new context and its protocol id."""
        assert self._browser is not None and self._system is not None
        before = (await self._system.send("Target.getBrowserContexts"))["browserContextIds"]
        context = await self._browser.new_context(**options)
        after = (await self._system.send("Target.getBrowserContexts"))["browserContextIds"]
        return context, next(name for name in after if name not in before)

    async def page(self, context: BrowserContext, name: str) -> Page:
        """Return a new page in a context; in virtual time, one whose frames we control."""
        if not self._virtual:
            return await context.new_page()
        assert self._system is not None
        async with context.expect_page(timeout=0) as coming:
            target = {"url": "about:blank", "browserContextId": name, "enableBeginFrameControl": True}
            await self._system.send("Target.createTarget", target)
        return await coming.value

    async def weigh(self) -> None:
        """Record the current memory as that of an empty page, unless it is recorded already."""
        if self._empty is None:
            self._empty = _renderer_memory(await self._processes())

    async def usage(self) -> BrowserUsage:
        """Return what the browser and its page have used so far."""
        processes = await self._processes()
        processor = sum(process["cpuTime"] for process in processes)
        return BrowserUsage(processor, 0 if self._empty is None else _renderer_memory(processes) - self._empty)

    async def _processes(self) -> list[dict[str, Any]]:
        assert self._system is not None
        processes: list[dict[str, Any]] = (await self._system.send("SystemInfo.getProcessInfo"))["processInfo"]
        return processes

    async def end(self) -> None:
        """Kill the browser and all its processes, also one that has not started yet."""
        import psutil

        for root in self._starting() if self._process is None else [self._process]:
            with suppress(psutil.Error):  # it is gone already
                for process in (*root.children(recursive=True), root):
                    with suppress(psutil.Error):
                        process.kill()
        browser, self._browser, self._process = self._browser, None, None
        if browser is not None:
            with suppress(Exception):  # it has just been killed: its errors mean nothing
                await asyncio.wait_for(browser.close(), FAREWELL)

    def _starting(self) -> list[psutil.Process]:
        """Return the processes of a start that has not come to its end."""
        import psutil

        found = []
        for process in psutil.Process().children(recursive=True) if self._mark else ():
            with suppress(psutil.Error):  # it has just ended
                found += [process] if self._mark in process.cmdline() else []
        return found

    async def close(self) -> None:
        """Close the browser cleanly; kill it if that fails."""
        if self._browser is not None:
            try:
                await asyncio.wait_for(self._browser.close(), 5)
                self._browser = self._process = None
            except Exception:  # a browser that does not close is killed
                await self.end()


def _renderer_memory(processes: list[dict[str, Any]]) -> int:
    return sum(private_memory(process["id"]) for process in processes if process["type"] == "renderer")


def private_memory(pid: int) -> int:
    """Return the private memory of a process in bytes, without libraries and caches shared between processes.

    Canvases live in memory shared with the process that draws them; that is counted.
    """
    import psutil

    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    except OSError:  # it is gone, or this is not Linux
        try:
            return int(psutil.Process(pid).memory_full_info().uss)
        except psutil.Error:
            return 0
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(1024 * int(value.split()[0]) for value in fields.values())
