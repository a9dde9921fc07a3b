"""One budget for many workers: each is lent a portion, spends from it, and says what it spent.

What is lent counts as reserved, so the budget holds whatever happens to a worker: if one is lost, its portion is
charged as spent. While there is plenty, a portion is enough for many calls. As soon as a call has to wait for money,
workers return what they do not need at once, and get money for one call at a time, as in a single process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fairtrial.core.money import UNKNOWN_USD, Cost, at_most
from fairtrial.engine.budget import Budget, Need, usual
from fairtrial.engine.cluster.messages import Money

_CALLS = 16  # that a portion is enough for, at most
_SHARE = 16  # a portion is at most this part of what each worker could have


class LeasedBudget:
    """A worker's side: money that the driver has lent to it."""

    def __init__(
        self, ask: Callable[[Need], Awaitable[float | None]], changed: Callable[[], None], *, limited: bool
    ) -> None:
        self.limited = limited
        self._ask, self._changed = ask, changed
        self._asking = asyncio.Lock()
        self._free = self._granted = self._returned = 0.0
        self._calls = 0
        self._spent = Cost()
        self._highest: dict[str, float] = {}
        self._tight = not limited  # nothing is kept for later where nothing runs short

    async def reserve(self, need: Need) -> float | None:
        if not self.limited and not need.target:
            self._calls += 1
            return need.usd
        if need.target:  # the driver knows what calls to this target have cost elsewhere
            amount = await self._ask(need)
        else:
            amount = await self._from_portion(need)
        if amount is not None:
            self._calls += 1
        return amount

    async def _from_portion(self, need: Need) -> float | None:
        async with self._asking:
            while self._free < need.usd:
                granted = await self._ask(need)
                if granted is None:
                    return None
                self._free += granted
            self._free -= need.usd
            return need.usd

    def arrived(self, usd: float) -> None:
        """Note a grant."""
        self._granted += usd

    def unclaimed(self, usd: float) -> None:
        """Keep a grant whose call has been cancelled."""
        self._free += usd
        self._changed()

    def tighten(self) -> None:
        """Return from now on what is not needed at once."""
        self._tight = True
        self._changed()

    def settle(self, reserved: float, cost: Cost) -> None:
        self._spent += cost
        self._calls -= 1
        if self.limited or reserved:
            self._free += reserved - (cost.charged if self.limited else 0.0)
            if self._tight:
                self._changed()

    def usual(self, need: Need) -> float:
        return usual(need, self._highest)  # what calls elsewhere have cost is not known here, so it may be less

    def note_cost(self, target: str, usd: float) -> None:
        self._highest[target] = max(self._highest.get(target, 0.0), usd)

    def report(self, *, last: bool = False) -> Money:
        """Return what became of the money; the rest is returned if it is short, or if this is the last report."""
        if (self._tight or last) and self._free > 0:
            self._returned += self._free
            self._free = 0.0
        settled = self._calls == 0 and self._free <= 0
        return Money(self._spent, self._granted, self._returned, settled, dict(self._highest))


class Lease:
    """The driver's side: what one worker has been lent, and may have spent as far as is known."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._grants = 0  # since everything was settled
        self._granted = self.outstanding = 0.0
        self._last = Money()

    def grant(self, usd: float) -> None:
        """Note that an amount, reserved in the budget, is lent to the worker."""
        self._grants += 1
        self._granted += usd
        self.outstanding += usd

    def update(self, money: Money) -> None:
        """Take over what the worker has spent and returned since its last report."""
        cost, returned = money.spent - self._last.spent, money.returned - self._last.returned
        settled = money.settled and money.granted == self._granted  # or a grant is still on its way
        spent = cost.charged if self._budget.limited else 0.0  # otherwise it was not taken from what is lent
        self._last = money
        for target, usd in money.highest.items():
            self._budget.note_cost(target, usd)
        self._release(self.outstanding if settled else min(self.outstanding, spent + returned), cost, settled)

    def lost(self, *, unknown: bool) -> None:
        """Charge everything that the worker could have spent; `unknown`: calls with a cost may have been in flight."""
        cost = at_most(max(self.outstanding, UNKNOWN_USD if unknown else 0.0))
        self._release(self.outstanding, cost, settled=True)

    def _release(self, usd: float, cost: Cost, settled: bool) -> None:
        self.outstanding -= usd
        ended = self._grants if settled else 0
        self._grants -= ended
        self._budget.charge(usd, cost, ended=ended)


def portion(amount: float, available: float, workers: int) -> float:
    """Return how much to lend beyond what a call needs: less and less as the budget runs out."""
    return max(0.0, min((_CALLS - 1) * amount, available / (_SHARE * max(1, workers)) - amount))
