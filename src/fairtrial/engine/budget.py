"""A hard budget: a call is made only if its maximum cost fits, and only after that amount has been recorded.

The amount reserved for a call is replaced by its actual cost once that is known, and stops being tracked here once the
call's row is durable. Until then the store records how much may have been spent without a row (`keep`), so that money
spent by a process that is killed is still counted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from fairtrial.core.money import UNKNOWN_USD, Cost

_ROUNDING = 1 - 1e-9
Keep = Callable[[float], Awaitable[None]]  # durably record how much may be spent in addition to what the rows say


Extra = Callable[[float, float], float]  # from what a call needs and what is available to what it may have beyond


class Need(msgspec.Struct, frozen=True):
    """The most that a call can cost, as data, so that a worker in another process can state it.

    Where that is not known beforehand, `target` is named: its first call runs alone with the whole budget, later ones
    reserve `factor` times as much as its most expensive call so far.
    """

    usd: float = 0.0
    target: str = ""
    factor: float = 1.0
    capped: bool = False  # it stops by itself at what it was given, so the rest of the budget may be enough


def usual(need: Need, highest_costs: Mapping[str, float]) -> float:
    """Return what is reserved for a need where there is plenty, by what calls to its target have cost."""
    return need.factor * highest_costs.get(need.target, math.inf) * _ROUNDING if need.target else need.usd


class Budget:
    """Money reserved for calls in flight and money spent.

    Without a limit, only the total is tracked, and what sessions of agents in flight may cost: they are few and dear.
    """

    def __init__(self, limit: float | None, spent: float = 0.0, keep: Keep | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self.spent = spent
        self.exhausted = False  # set once a call has been refused
        self.unrecorded = Cost()  # spent, but not yet in any row
        self._keep = keep
        self._recorded_at_risk = 0.0
        self._recording = asyncio.Lock()
        self._reserved = 0.0
        self._in_batches = 0.0  # of what is reserved: the rows of batches record it
        self._calls = 0  # in flight
        self._waiting: list[asyncio.Future[None]] = []
        self.when_short: list[Callable[[], None]] = []  # called when a call has to wait for what others have reserved
        self.highest_costs: dict[str, float] = {}  # by target: what its most expensive call has cost

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._limit != math.inf

    @property
    def unspent(self) -> float:
        """The amount not yet spent; part of it may be reserved."""
        return self._limit - self.spent

    @property
    def short(self) -> bool:
        """Whether a call waits for money that others have reserved."""
        return any(not settled.done() for settled in self._waiting)

    def amount(self, need: Need) -> float:
        """Return the amount to reserve for a need."""
        if not need.target:
            return need.usd
        unspent, highest = max(0.0, self.unspent), self.highest_costs.get(need.target)
        if not self.limited:
            return max(UNKNOWN_USD, need.factor * (highest or 0.0))
        if highest is None:
            return unspent
        return min(unspent, need.factor * highest) if need.capped else need.factor * highest

    def usual(self, need: Need) -> float:
        return usual(need, self.highest_costs)

    def note_cost(self, target: str, usd: float) -> None:
        self.highest_costs[target] = max(self.highest_costs.get(target, 0.0), usd)

    async def reserve(self, need: Need, extra: Extra | None = None, *, batch: bool = False) -> float | None:
        """Reserve the maximum cost of a call and return it, or None when the budget is too small.

        While other calls are in flight, wait for their actual cost, usually much less than they reserved. `extra` says
        how much more may be reserved at once, for calls that follow. For a request in a `batch`, nothing is recorded
        here: it is spent only when the batch is submitted, and that is recorded before.
        """
        while True:
            amount, available = self.amount(need), self.unspent - self._reserved
            if amount <= available and available >= 0 and not self._used_up(need):
                break
            if self._calls == 0:
                self.exhausted = True
                return None
            for call in self.when_short:
                call()
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        if extra is not None:
            amount += min(extra(amount, available), available - amount)
        self._calls += 1
        self._reserved += amount
        if batch:
            self._in_batches += amount
            return amount
        if self._keep is not None and (self.limited or amount):
            try:
                await self._record_at_risk(self._keep)
            except BaseException:
                self.settle(amount, Cost())
                raise
        return amount

    def _used_up(self, need: Need) -> bool:
        """Return whether nothing is left for a call whose cost is not known beforehand.

        With a budget of 0, a function that does not stop by itself is called once: most cost nothing.
        """
        free = self.highest_costs.get(need.target) == 0 or (self.spent <= 0 and not need.capped)
        return bool(need.target) and self.unspent <= 0 and not free

    def take_over(self, usd: float) -> float:
        """Count a request of an earlier session as reserved, instead of spent, because its result is now waited for."""
        self.spent -= usd
        self._calls += 1
        self._reserved += usd
        self._in_batches += usd
        return usd

    def settle_batched(self, reserved: float, cost: Cost) -> None:
        """Replace the reservation of a request in a batch by its actual cost."""
        self._in_batches -= reserved
        self.settle(reserved, cost)

    async def _record_at_risk(self, keep: Keep) -> None:
        """Record how much may be spent before any of it is; rarely needed, because most calls cost about the same."""
        if self._record_is_current():
            return
        async with self._recording:
            if not self._record_is_current():
                at_risk = self._at_risk()
                await keep(at_risk)
                self._recorded_at_risk = at_risk

    def _record_is_current(self) -> bool:
        """Whether the record covers the amount at risk without being far too high after one expensive call."""
        return self._at_risk() <= self._recorded_at_risk <= self._at_risk() + self._limit / 4

    def _at_risk(self) -> float:
        return self._reserved - self._in_batches + self.unrecorded.charged

    @property
    def on_record(self) -> bool:
        """Whether the store says that something may be spent without a row."""
        return self.limited or self._recorded_at_risk > 0

    def settle(self, reserved: float, cost: Cost) -> None:
        self.charge(reserved, cost, ended=1)

    def charge(self, reserved: float, cost: Cost, *, ended: int = 0) -> None:
        """Replace a part of what is reserved by a cost; `ended` reservations have nothing left."""
        self.spent += cost.charged
        self.unrecorded += cost
        self._calls -= ended
        # A leftover floating-point rounding error must not keep other calls waiting.
        self._reserved = self._reserved - reserved if self._calls else 0.0
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def recorded(self, cost: Cost) -> None:
        """Note that a row with this cost is durable."""
        self.unrecorded -= cost
