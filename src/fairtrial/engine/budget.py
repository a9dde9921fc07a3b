"""A hard budget: a call is made only if even its dearest outcome can be paid for, and if that is written down.

What was set aside for a call is replaced by what the call cost once that is known, and leaves the budget's own
account once the call's row is durable. Until then the store knows how much may have been spent without a row
(`keep`), so that a killed process cannot spend money that nobody counts.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from fairtrial.core.money import Cost

Keep = Callable[[float], Awaitable[None]]  # note durably how much may be spent beside what rows say


class Budget:
    """Money set aside for calls under way, and money spent. Without a limit, only the sum is kept."""

    def __init__(self, limit: float | None, spent: float = 0.0, keep: Keep | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self.spent = spent
        self.exhausted = False  # a call was refused
        self.unrecorded = Cost()  # spent, and in no row yet
        self._keep = keep if self.limited else None
        self._kept = 0.0
        self._keeping = asyncio.Lock()
        self._reserved = 0.0
        self._calls = 0  # under way
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._limit != math.inf

    @property
    def unspent(self) -> float:
        """What is not spent, though some of it may be set aside."""
        return self._limit - self.spent

    async def reserve(self, most: Callable[[], float]) -> float | None:
        """Set aside the most that a call can cost, and say how much that is; None when the budget cannot bear it.

        As long as other calls are under way, one waits for what they really cost: mostly much less.
        """
        while True:
            amount, left = most(), self.unspent - self._reserved
            if amount <= left and left >= 0:
                break
            if self._calls == 0:
                self.exhausted = True
                return None
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self._calls += 1
        self._reserved += amount
        try:
            await self._note()
        except BaseException:
            self.settle(amount, Cost())
            raise
        return amount

    async def _note(self) -> None:
        """Have it on record how much may be spent before any of it is; rarely, since calls are much alike."""
        if self._keep is None or self._noted():
            return
        async with self._keeping:
            if not self._noted():
                at_risk = self._at_risk()
                await self._keep(at_risk)
                self._kept = at_risk

    def _noted(self) -> bool:
        """Whether the record covers what is at risk, and is not much too high after a single dear call."""
        return self._at_risk() <= self._kept <= self._at_risk() + self._limit / 4

    def _at_risk(self) -> float:
        return self._reserved + self.unrecorded.charged

    def settle(self, reserved: float, cost: Cost) -> None:
        """Replace what was set aside by what was spent."""
        self.spent += cost.charged
        self.unrecorded += cost
        self._calls -= 1
        # What is left of sums of binary fractions must not keep anybody waiting.
        self._reserved = self._reserved - reserved if self._calls else 0.0
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def recorded(self, cost: Cost) -> None:
        """A row that says what was spent is durable."""
        self.unrecorded -= cost
