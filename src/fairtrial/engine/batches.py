"""The batches of a session: which targets and judges are asked in them, and through which ladders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext
from functools import partial

import msgspec

from fairtrial.core.answer import PENDING, Answer, Failure, Outcome, Request
from fairtrial.core.batch import BatchPlace
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.judge import Panel
from fairtrial.core.money import Cost
from fairtrial.core.settings import JudgeSpec, Settings
from fairtrial.core.target import Target
from fairtrial.core.trial import Trial
from fairtrial.engine.activity import Activity, Busy
from fairtrial.engine.batch_book import BatchBook
from fairtrial.engine.batching import BatchQueue
from fairtrial.engine.budget import Budget
from fairtrial.engine.cancelling import raise_if_cancelled
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Ladder, Lookup, Purse, price_of
from fairtrial.engine.limits import Limiter
from fairtrial.providers.prices import FREE, Price

_ATTEMPTS = 3  # each takes up to a day


class Batches:
    """Makes ladders for what is asked in batches. Without a book, as in a worker, nothing is."""

    def __init__(self, job: Job, book: BatchBook | None, budget: Purse) -> None:
        self._job, self._book, self._budget = job, book, budget
        self.activity = Activity()
        self._queues: dict[str, BatchQueue] = {}
        self._judges: dict[str, Ladder] = {}

    async def close(self) -> None:
        """Stop waiting; batches go on at their providers."""
        for queue in self._queues.values():
            await queue.close()

    def held(self) -> list[tuple[str, str]]:
        """Say what is waited for, by target."""
        return [(name, queue.held()) for name, queue in list(self._queues.items())]

    def ask(self, spec: TargetSpec) -> bool:
        """Return whether a target is asked in batches; to score answers again, none is asked."""
        return bool(spec.batch) and self._book is not None and self._job.mode != "rescore"

    def ladder(self, target: Target, lookup: Lookup | None = None) -> Ladder:
        """Return the ladder of a target."""
        assert self._book is not None and isinstance(self._budget, Budget), "batches are the driver's"
        api, settings = target.batches(), self._job.settings
        queue = self._queues[target.spec.id] = BatchQueue(api, target.spec.id, self._book, self.activity)
        # Who waits for money may wait for requests that wait for company.
        self._budget.when_short.append(queue.flush)
        return BatchLadder(
            target,
            settings,
            queue=queue,
            part_of_price=api.part_of_price,
            budget=self._budget,
            price=price_of(target, settings.prices),
            lookup=lookup if settings.cache else None,
        )

    def add_judge(self, target: Target) -> None:
        """Ask a judge in batches, if its settings say so."""
        if target.spec.batch and self._book is not None:
            self._judges[target.spec.id] = self.ladder(target)

    def panel_of(self, panel: Panel, trial: Trial, busy: Busy) -> Panel:
        """Return the panel for one trial: a judge that is asked in batches has to know which trial it judges."""
        if not self._judges:
            return panel
        pairs = zip(panel.judges, self._job.settings.judges, strict=True)
        judges = (
            msgspec.structs.replace(judge, ask=partial(self._ask_judge, spec, trial, busy))
            if spec.target.id in self._judges
            else judge
            for judge, spec in pairs
        )
        return msgspec.structs.replace(panel, judges=tuple(judges))

    async def _ask_judge(self, judge: JudgeSpec, trial: Trial, busy: Busy, request: Request) -> Outcome:
        key = f"{trial.id}/{judge.name}/{request.prompt_hash}/{request.repeat}"
        with busy.waiting():
            return await self._judges[judge.target.id].ask(msgspec.structs.replace(request, trial_id=key))


class BatchLadder(Ladder):
    """Makes the calls to one target through its provider's batch API: cached → retried → afforded → batched.

    Nothing limits how many requests wait at a time but the budget, in which each is reserved at the batch's price. What
    fails for a passing reason is put into the next batch.
    """

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
