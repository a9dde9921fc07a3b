"""A hard budget: a call is made only if even its dearest outcome can be paid for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable


class Budget:
    """Money set aside for calls under way, and money spent. Without a limit, only the sum is kept."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self._limit = math.inf if limit is None else limit
        self.spent = spent
        self.exhausted = False  # a call was refused
        self._reserved = 0.0
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
                self._reserved += amount
                return amount
            if self._reserved == 0:
                self.exhausted = True
                return None
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was set aside by what was spent."""
        self.spent += cost
        self._reserved -= reserved
        if self._reserved < 1e-12:  # the rest of additions in binary fractions
            self._reserved = 0.0
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)
