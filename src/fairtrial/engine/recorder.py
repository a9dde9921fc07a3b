"""Write answers, scores, verdicts and the ledger; each is durable before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from fairtrial.core.answer import Answer, EarlierTurn, Failure, Outcome
from fairtrial.core.batch import BatchPlace, BatchRecord
from fairtrial.core.errors import BadRowError
from fairtrial.core.money import Cost, total
from fairtrial.core.score import Score, Unscored
from fairtrial.core.trial import Trial
from fairtrial.engine.budget import Budget
from fairtrial.engine.cancelling import to_the_end
from fairtrial.engine.job import Job
from fairtrial.engine.scoring import Scoring
from fairtrial.store import Saver, rows
from fairtrial.store.batches import batch_row, request_row
from fairtrial.store.lease import RunLease
from fairtrial.store.ledger import ledger_row
from fairtrial.store.waiting import Waiting

_LARGE = 2**19  # bytes; the changes of a trial that are unpacked in a thread
_ROUNDING_ERROR = 1e-12  # USD; smaller amounts are floating-point rounding errors


class Recorder:
    """Writes one session's rows and keeps its budget up to date."""

    def __init__(self, lease: RunLease, job: Job, scoring: Scoring, spent: float, waiting: Waiting) -> None:
        self._job, self._scoring = job, scoring
        self._saver = Saver(lease.write, waiting, lease.keep_late)
        self.budget = Budget(job.settings.budget_usd, spent, keep=self._save_at_risk)

    async def __aenter__(self) -> Recorder:
        await self._saver.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, *exception: object) -> None:
        try:
            await self._close_ledger()
        finally:
            await self._saver.__aexit__(kind, *exception)

    async def _save_at_risk(self, usd: float) -> None:
        await self._saver.save("ledgers", ledger_row(self._job.run_id, usd))

    async def _close_ledger(self) -> None:
        """Charge the run for what was spent without a row, now that no call is in flight."""
        await self._saver.flush()
        unrecorded = self.budget.unrecorded
        if unrecorded.charged > _ROUNDING_ERROR or unrecorded.unknown or self.budget.on_record:
            self._saver.save("ledgers", ledger_row(self._job.run_id, 0.0, unrecorded), paid=unrecorded)

    async def save_outcome(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Store an answer or a failure. An answer that cannot be stored becomes a failure with the same cost."""
        unrecorded = outcome.cost
        if outcome.turns:
            unrecorded -= total(turn.cost for turn in outcome.turns)
        recorded = partial(self.budget.recorded, unrecorded)
        paid = None if outcome.cached or outcome.batched else _paid(outcome.result, unrecorded)
        for number, turn in enumerate(outcome.turns):
            # In the same transaction: from now on their cost and what happened in them is in the trial's row.
            # A failed conversation may be taken up again, for which the session of its last turn is needed.
            kept = turn.answer.trace if isinstance(outcome.result, Failure) else None
            answer = msgspec.structs.replace(turn.answer, trace=kept)
            self._save_turn(trial, number, msgspec.structs.replace(turn, answer=answer, cost=Cost()))
        await self._save_changes(trial, outcome.result)
        row = rows.trial_row(self._job.run_id, trial, outcome, self._job.variables)
        self._save_batched(outcome.batched)
        try:
            await self._saver.save("trials", row, recorded, paid)
        except BadRowError as error:
            failure = Failure(kind="malformed", message=f"the answer cannot be stored ({error})")
            outcome = msgspec.structs.replace(outcome, result=failure)
            row = rows.trial_row(self._job.run_id, trial, outcome, self._job.variables)
            await self._saver.save("trials", row, recorded, paid)
        return outcome

    def _save_batched(self, places: Iterable[BatchPlace]) -> None:
        """Note that the results of requests in batches are stored, in the same transaction."""
        for place in places:
            self._saver.save("batch_requests", request_row(self._job.run_id, place, done=True))

    async def save_batch(self, batch: BatchRecord, places: Sequence[BatchPlace] = ()) -> None:
        """Store a batch and the requests in it, before it is submitted or when more is known about it."""
        for place in places:
            self._saver.save("batch_requests", request_row(self._job.run_id, place, done=False))
        await self._saver.save("batches", batch_row(self._job.run_id, batch))

    async def save_turn(self, trial: Trial, number: int, turn: EarlierTurn, cost: Cost) -> None:
        """Store a turn of a conversation that goes on; `cost` is that of the last call, which its row has now."""
        await self._save_changes(trial, turn.answer, number)
        await self._save_turn(trial, number, turn, partial(self.budget.recorded, cost), cost)

    async def _save_changes(self, trial: Trial, result: Answer | Failure, turn: int | None = None) -> None:
        """Store what an agent changed in its workspace, in the same transaction as its answer or before."""
        changes = result.changes
        if changes is None:
            return
        make_rows = partial(rows.changes_rows, self._job.run_id, trial, changes, turn, self._job.variables)
        # The answer has been paid for: cancelling does not keep it from being stored.
        made = make_rows() if len(changes.body) < _LARGE else await to_the_end(asyncio.to_thread(make_rows))
        for table, row in made.items():
            self._saver.save(table, row)

    def _save_turn(
        self,
        trial: Trial,
        number: int,
        turn: EarlierTurn,
        then: Callable[[], None] | None = None,
        paid: Cost | None = None,
    ) -> asyncio.Future[None]:
        row = rows.turn_row(self._job.run_id, trial, number, turn, self._job.variables)
        return self._saver.save("turns", row, then, paid)

    async def save_score(self, trial: Trial, result: Score | Unscored) -> None:
        """Store a score together with every verdict behind it."""
        run_id, number = self._job.run_id, self._scoring.number
        self._save_judgements(trial, result)
        for file in result.files if isinstance(result, Score) else ():
            for table, row in rows.file_rows(run_id, trial, file).items():
                self._saver.save(table, row)
        scorer, scales = self._scoring.spec_of(trial), self._scoring.scales_of(trial)
        as_row = partial(rows.score_row, run_id, trial, number, scorer, variables=self._job.variables, scales=scales)
        try:
            await self._saver.save("scores", as_row(result))
        except BadRowError as error:
            await self._saver.save("scores", as_row(Unscored(kind="crashed", message=str(error))))

    async def save_judgements(self, trial: Trial, result: Score | Unscored) -> None:
        """Store verdicts that were not enough for a score."""
        await asyncio.gather(*self._save_judgements(trial, result))

    def _save_judgements(self, trial: Trial, result: Score | Unscored) -> list[asyncio.Future[None]]:
        run_id, number = self._job.run_id, self._scoring.number
        for judgement in result.judgements:
            self._save_batched(judgement.batched)
        return [
            self._saver.save(
                "judgements",
                rows.judgement_row(run_id, trial, number, judgement, self._job.variables),
                partial(self.budget.recorded, judgement.cost),
                judgement.cost if judgement.asked and not judgement.batched else None,
            )
            for judgement in result.judgements
            if judgement.stored != number and (judgement.asked or judgement.stored is not None)
        ]


def _paid(result: Answer | Failure, cost: Cost) -> Cost | None:
    """Return what a row that comes too late has cost; None if nothing would be lost with it.

    The results of batches are not lost: whoever has the run collects them, too.
    """
    return cost if isinstance(result, Answer) or cost.charged or cost.unknown else None
