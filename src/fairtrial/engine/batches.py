"""The batches of a session: which targets and judges are asked in them, and through which ladders."""

from __future__ import annotations

from functools import partial

import msgspec

from fairtrial.core.answer import Outcome, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.judge import Panel
from fairtrial.core.settings import JudgeSpec
from fairtrial.core.target import Target
from fairtrial.core.trial import Trial
from fairtrial.engine.activity import Activity, Busy
from fairtrial.engine.batch_ladder import BatchLadder
from fairtrial.engine.batch_slice import BatchRecords
from fairtrial.engine.batching import BatchQueue
from fairtrial.engine.budget import Budget
from fairtrial.engine.job import Job
from fairtrial.engine.ladder import Ladder, Lookup, Purse, price_of


class Batches:
    """Makes ladders for what is asked in batches. Without a book, as in a worker, nothing is."""

    def __init__(self, job: Job, book: BatchRecords | None, budget: Purse) -> None:
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
