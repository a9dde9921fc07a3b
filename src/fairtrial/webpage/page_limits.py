"""Limits on a page: memory, and the processor time it may use before it responds."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from fairtrial.webpage.browser_process import BrowserProcess
from fairtrial.webpage.clock import Clock

_LOOK_AGAIN = 0.2  # seconds; looking takes two milliseconds of the processor
_LOOKS_AT_NOTHING = 25  # that may fail in a row
TOO_MUCH_MEMORY = "the page took too much memory"
NO_ANSWER = "the page does not answer: an endless loop?"
CRASHED = "the page crashed, or went away while it was looked at"


class Watch:
    """Watches the limits of one page while it is being used.

    An endless loop is detected by processor time, not by wall time: on a busy machine a good page is slow as well.
    """

    def __init__(self, slot: BrowserProcess, busy: float) -> None:
        self._slot, self._busy = slot, busy
        self._ping: asyncio.Task[Any] | None = None
        self._frames = 0
        self._since = 0.0  # processor time when the page last responded
        self.clock: Clock | None = None  # None until something is shown
        self.crashed = False  # waiting for a crashed page would never end

    async def violation(self) -> str:
        """Wait until a limit is exceeded, and return which."""
        from playwright.async_api import Error

        failed = 0
        try:
            while True:
                await asyncio.sleep(_LOOK_AGAIN)
                if self.crashed or failed > _LOOKS_AT_NOTHING:
                    return CRASHED
                try:
                    usage = await self._slot.usage()
                except Error:  # the browser is going away; the code that uses it will notice, unless it waits for it
                    failed += 1
                    continue
                failed = 0
                if usage.memory > self._slot.limits.memory:
                    return TOO_MUCH_MEMORY
                if self._is_responsive():
                    self._since = usage.processor
                elif usage.processor - self._since > self._busy:
                    return NO_ANSWER
        finally:
            if self._ping is not None:
                self._ping.cancel()

    def _is_responsive(self) -> bool:
        """Return whether the page has responded since the last call, and shown a frame if one is due."""
        if self.clock is None:
            return True
        before, self._frames = self._frames, self.clock.frames
        if self._frames - before > 1:  # a frame was shown, for which the page had to be there
            return True
        waiting = self._frames % 2 == 1 and self._frames == before
        if waiting or (self._ping is not None and not self._ping.done()):
            return False
        self._ping = asyncio.ensure_future(_ping_page(self.clock))
        return True


async def _ping_page(clock: Clock) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # a page that is gone needs no watching
        await clock.world.send("Runtime.evaluate", expression="0")
