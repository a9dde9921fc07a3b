"""Whether a page keeps within its limits: memory, and the processor's time that it takes before it answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fairtrial.webpage.clock import Clock

if TYPE_CHECKING:
    from fairtrial.webpage.browser_process import BrowserProcess

_LOOK_AGAIN = 0.1  # seconds
TOO_MUCH_MEMORY = "the page took too much memory"
NO_ANSWER = "the page does not answer: an endless loop?"
CRASHED = "the page crashed, or went away while it was looked at"


class Watch:
    """Looks after one page while something is done with it.

    An endless loop is told by processor time, not by the time of day: on a busy machine a good page is slow as well.
    """

    def __init__(self, slot: BrowserProcess, busy: float) -> None:
        self._slot, self._busy = slot, busy
        self._asked: asyncio.Task[Any] | None = None
        self._frames = 0
        self._since = 0.0  # processor time when the page last answered
        self.clock: Clock | None = None  # none as long as nothing is shown
        self.crashed = False  # whoever waits for a page that is no more waits for ever

    async def broken(self) -> str:
        """Come back when a limit does not hold, with what is to be said of it."""
        from playwright.async_api import Error

        try:
            while True:
                await asyncio.sleep(_LOOK_AGAIN)
                if self.crashed:
                    return CRASHED
                try:
                    usage = await self._slot.usage()
                except Error:  # it is going: whoever works with it will notice
                    continue
                if usage.memory > self._slot.limits.memory:
                    return TOO_MUCH_MEMORY
                if self._answers():
                    self._since = usage.processor
                elif usage.processor - self._since > self._busy:
                    return NO_ANSWER
        finally:
            if self._asked is not None:
                self._asked.cancel()

    def _answers(self) -> bool:
        """Whether the page has said something since the last time, and shown a frame if it has to."""
        if self.clock is None:
            return True
        waiting = self.clock.frames % 2 == 1 and self.clock.frames == self._frames
        self._frames = self.clock.frames
        if waiting or (self._asked is not None and not self._asked.done()):
            return False
        self._asked = asyncio.ensure_future(_ping(self.clock))
        return True


async def _ping(clock: Clock) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # a page that is gone needs no watching
        await clock.world.send("Runtime.evaluate", expression="0")
