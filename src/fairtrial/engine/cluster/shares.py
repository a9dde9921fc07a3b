"""One limit for many workers: each gets a share of the calls at a time, by what it needs.

Shares are fair (max-min): no worker gets more while one that wants more has less. A share that shrinks counts until
its worker keeps to the new one, so that all calls in flight together never exceed the limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from fairtrial.engine.cluster.messages import LimitShare, Use
from fairtrial.engine.limits import Limiter

W = TypeVar("W", bound=Hashable)


def fair_shares(width: int, wanted: Mapping[W, int], order: Callable[[W], float]) -> dict[W, int]:
    """Divide `width` among those who want some; `order` says who comes first for what cannot be divided."""
    shares = dict.fromkeys(wanted, 0)
    hungry = [worker for worker, want in wanted.items() if want > 0]
    while width > 0 and hungry:
        each = width // len(hungry)
        if each == 0:
            for worker in sorted(hungry, key=order)[:width]:
                shares[worker] += 1
            break
        for worker in hungry:
            more = min(each, wanted[worker] - shares[worker])
            shares[worker] += more
            width -= more
        hungry = [worker for worker in hungry if wanted[worker] > shares[worker]]
    return shares


class LeasedLimiter(Limiter):
    """A worker's side: a limiter that keeps to the share that the driver gives it, and to none once it has gone."""

    def __init__(self, most: int, changed: Callable[[], None], orphaned: Callable[[], bool] = lambda: False) -> None:
        """`orphaned` says whether the driver has gone, even if nothing else has noticed that yet."""
        super().__init__(most)
        self._changed, self._orphaned = changed, orphaned
        self._share = LimitShare(0)
        self._width = 0.0
        self._begun = self._succeeded = 0
        self._throttled: list[float | None] = []

    def apply(self, share: LimitShare) -> None:
        """Keep to a new share from now on."""
        fewer = share.slots < self._share.slots
        self._share, self._width = share, float(min(share.slots, self._most))
        if share.pause > 0:
            self._close(share.pause)
        self._wake()
        if fewer:
            self._changed()

    async def __aenter__(self) -> None:
        if self._busy >= self._width:
            self._changed()
        await super().__aenter__()
        if self._orphaned():
            await super().__aexit__(None, None, None)
            raise asyncio.CancelledError
        self._begun += 1

    async def __aexit__(self, *exception: object) -> None:
        await super().__aexit__(*exception)
        if self._waiting or self._busy >= self._share.slots:  # it may be somebody else's turn
            self._changed()

    def succeeded(self) -> None:
        """Note a successful call, for the driver."""
        self._succeeded += 1

    def throttled(self, retry_after: float | None) -> None:
        """Note a 429, for the driver."""
        self._throttled.append(retry_after)
        self._changed()

    def report(self) -> Use:
        """Return how the share is used, with what happened since the last report."""
        waiting = min(self.waiting, max(0, self._most - self._busy))
        use = Use(self._share.number, self._busy, waiting, self._begun, self._succeeded, tuple(self._throttled))
        self._succeeded, self._throttled = 0, []
        return use


class SharedLimit(Generic[W]):
    """The driver's side: divides a limiter's width, which adapts to what all workers see of the provider."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self._uses: dict[W, Use] = {}
        self._given: dict[W, list[LimitShare]] = {}  # the share that a worker is known to keep to, and later ones
        self._known = (limiter.width, limiter.closed_until)

    @property
    def waiting(self) -> int:
        """The calls that wait in all workers."""
        return sum(use.waiting for use in self._uses.values())

    def update(self, worker: W, use: Use) -> bool:
        """Take over a worker's report; return whether shares may have to change."""
        before = self._uses.get(worker)
        self._uses[worker] = use
        self._given[worker] = [share for share in self._shares(worker) if share.number >= use.share]
        for _ in range(use.succeeded):
            self.limiter.succeeded()
        for retry_after in use.throttled:
            self.limiter.throttled(retry_after)
        if before is None or (before.busy, before.waiting, before.share) != (use.busy, use.waiting, use.share):
            return True
        return self._known != (self.limiter.width, self.limiter.closed_until)

    def remove(self, worker: W) -> None:
        """Take back the share of a worker that is gone."""
        self._uses.pop(worker, None)
        self._given.pop(worker, None)

    def changes(self) -> dict[W, LimitShare]:
        """Return the shares that change; the sum of what workers may use never exceeds the width."""
        width, until = self.limiter.width, self.limiter.closed_until
        paused = until > self._known[1]
        self._known = (width, until)
        ideal = self._ideal(width)
        free = width - sum(map(self._in_use, self._uses))
        changed: dict[W, LimitShare] = {}
        for worker in sorted(ideal, key=lambda one: self._uses[one].begun):  # who had the fewest calls is served first
            slots = ideal[worker]
            given, in_use = self._slots(worker), self._in_use(worker)
            new = slots if slots <= in_use else in_use + max(0, min(slots - in_use, free))
            free -= max(0, new - in_use)
            if new != given or paused:
                number = self._shares(worker)[-1].number + 1
                changed[worker] = LimitShare(new, self.limiter.pause, number)
                self._given[worker].append(changed[worker])
        return changed

    def _ideal(self, width: int) -> dict[W, int]:
        wanted = {worker: use.busy + use.waiting for worker, use in self._uses.items()}
        hungry = sum(want > 0 for want in wanted.values())
        if hungry > width:  # take turns: who has made the fewest calls comes first
            shares = fair_shares(width, wanted, lambda worker: self._uses[worker].begun)
        else:  # keep what they have
            shares = fair_shares(width, wanted, lambda worker: -self._slots(worker))
        spare = (width - sum(shares.values())) // max(1, len(shares))
        return {worker: slots + spare for worker, slots in shares.items()}  # so that the next call need not ask

    def _shares(self, worker: W) -> list[LimitShare]:
        return self._given.get(worker) or [LimitShare(0)]

    def _slots(self, worker: W) -> int:
        return self._shares(worker)[-1].slots

    def _in_use(self, worker: W) -> int:
        """Return how many calls a worker may have in flight: more than its share until it keeps to that."""
        return max(self._uses[worker].busy, *(share.slots for share in self._shares(worker)), 0)
