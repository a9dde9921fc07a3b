"""The ladder of calls that are made in batches: cached → retried → afforded → batched.

Nothing limits how many requests wait at a time but the budget, in which each is reserved at the batch's price. What
fails for a passing reason is put into the next batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext

import msgspec

from fairtrial.core.answer import PENDING, Answer, Failure, Outcome, Request
from fairtrial.core.batch import BatchPlace
from fairtrial.core.money import Cost
from fairtrial.core.settings import Settings
from fairtrial.core.target import Target
from fairtrial.engine.batching import BatchQueue
from fairtrial.engine.budget import Budget
from fairtrial.engine.cancelling import raise_if_cancelled
from fairtrial.engine.ladder import Ladder, Lookup
from fairtrial.engine.limits import Limiter
from fairtrial.providers.prices import FREE, Price

_ATTEMPTS = 3  # each takes up to a day


class BatchLadder(Ladder):
    """Makes the calls to one target through its provider's batch API."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        *,
        queue: BatchQueue,
        part_of_price: float,
        budget: Budget,
        price: Price | Awaitable[Price | None],
        lookup: Lookup | None = None,
    ) -> None:
        retry = settings.retry
        patient = msgspec.structs.replace(
            retry, attempts=min(_ATTEMPTS, retry.attempts), wait=0.0, max_wait=0.0, empty_wait=0.0
        )
        super().__init__(
            target,
            msgspec.structs.replace(settings, retry=patient),
            gate=nullcontext(),
            limiter=Limiter(1),
            budget=budget,
            price=price if price is FREE else asyncio.ensure_future(_part_of(price, part_of_price)),
            lookup=lookup,
        )
        self._queue, self._purse = queue, budget
        self._in_turn = asyncio.Lock()
        self._places: dict[str, list[BatchPlace]] = {}  # by call: where its requests were

    async def _retried(self, request: Request) -> Outcome:
        outcome = await super()._retried(request)
        places = self._places.pop(request.trial_id, ())
        pending = isinstance(outcome.result, Failure) and outcome.result.kind == PENDING
        return outcome if pending else msgspec.structs.replace(outcome, batched=tuple(places))

    async def _afforded(self, request: Request) -> tuple[Answer | Failure, Cost]:
        """afforded: reserve the maximum cost at the batch's price, unless an earlier session has done so."""
        raise_if_cancelled()
        await self._load_price()
        key = f"{request.trial_id}/{request.attempt}"
        place = self._queue.place_of(key)
        if place is not None:
            reserved = self._purse.take_over(place.usd)
        else:
            async with self._in_turn:  # otherwise thousands would wake up whenever one result arrives
                granted = await self._purse.reserve(self._need(request), batch=True)
            if granted is None:
                return Failure(kind="budget", message="budget reached: another call could exceed it"), Cost()
            reserved = granted
        # Without a budget nothing is reserved, but a later session may have one.
        usd = reserved if self._purse.limited else self._most_usd(self._most(request)) or 0.0
        cost = Cost()
        try:
            delivered = await self._queue.ask(key, request, usd)
            if delivered.place is not None:
                self._places.setdefault(request.trial_id, []).append(delivered.place)
                result, cost = self._settled(request, delivered.result, reserved)
                return result, cost
            return delivered.result, cost
        finally:  # if it is cancelled, what it may cost is in the row of its batch
            self._purse.settle_batched(reserved, cost)


async def _part_of(price: Price | Awaitable[Price | None], part: float) -> Price | None:
    whole = price if isinstance(price, Price) else await price
    return None if whole is None else whole.times(part)
