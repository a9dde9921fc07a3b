"""A hard budget: a call is made only if even its dearest outcome can be paid for."""

from __future__ import annotations

import asyncio


class Budget:
    """Money set aside for calls under way, and money spent. Without a limit, only the sum is kept."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self._limit, self.spent = limit, spent
        self._reserved = 0.0
        self._changed = asyncio.Condition()

    async def reserve(self, amount: float) -> bool:
        """Set aside the most that a call can cost; False when the budget cannot bear it.

        As long as other calls are under way, one waits for what they really cost: mostly much less.
        """
        if self._limit is None or amount == 0:
            return True
        async with self._changed:
            limit = self._limit
            await self._changed.wait_for(lambda: self.spent + self._reserved + amount <= limit or self._reserved == 0)
            if self.spent + amount > limit:
                return False
            self._reserved += amount
            return True

    async def settle(self, reserved: float, cost: float) -> None:
        """Replace what was set aside by what was spent."""
        self.spent += cost
        if self._limit is not None and reserved:
            async with self._changed:
                self._reserved = max(0.0, self._reserved - reserved)
                if self._reserved < 1e-12:  # the rest of additions in binary fractions
                    self._reserved = 0.0
                self._changed.notify_all()
