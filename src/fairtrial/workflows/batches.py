"""Batches of a stored run: how far they are at their providers, and cancelling them."""

from __future__ import annotations

import msgspec

from fairtrial.core.answer import Failure
from fairtrial.core.batch import BatchRecord
from fairtrial.core.errors import FairtrialError
from fairtrial.core.settings import target_specs
from fairtrial.engine.targets import open_targets
from fairtrial.providers.batch import BatchApi, BatchStatus
from fairtrial.store import Store
from fairtrial.store.batches import batches_of, open_counts
from fairtrial.workflows.stored import stored_job


class BatchOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of a run; `state` says how far it is, `unstored` how many of its results are not in the store."""

    batch: BatchRecord
    state: str
    unstored: int
    cancelled: bool = False


async def look_at_batches(name: str, *, store: Store, cancel: bool = False) -> list[BatchOfRun]:
    """Return the batches of a run, after asking the providers about those whose results are not stored."""
    record = store.find_run(name)
    batches, unstored = batches_of(store, record.id), open_counts(store, record.id)
    if not any(unstored.get(batch.number) for batch in batches):
        return [BatchOfRun(batch=batch, state="stored", unstored=0) for batch in batches]
    job = stored_job(store, record.id, "resume", {})
    specs = {spec.id: spec for spec in target_specs(job.arms, job.settings)}
    wanted = {batch.target for batch in batches if unstored.get(batch.number)}
    missing = sorted(wanted - specs.keys())
    if missing:
        raise FairtrialError(f"{missing[0]}, whose batch this is, is not part of the run's suite any more")
    async with open_targets(
        [specs[name] for name in sorted(wanted)], job.folder, job.variables, concurrency=1
    ) as opened:
        apis = {name: target.batches() for name, target in opened.items()}
        return [
            await _look(apis[batch.target], batch, count, cancel=cancel)
            if (count := unstored.get(batch.number, 0))
            else BatchOfRun(batch=batch, state="stored", unstored=0)
            for batch in batches
        ]


async def _look(api: BatchApi, batch: BatchRecord, unstored: int, *, cancel: bool) -> BatchOfRun:
    if batch.id is None:
        return BatchOfRun(batch=batch, state="perhaps not submitted: `fairtrial resume` finds out", unstored=unstored)
    status = await api.look(batch.id)
    if isinstance(status, BatchStatus) and cancel and not status.ended:
        failure = await api.cancel(batch.id)
        state = f"cannot be cancelled ({failure.message})" if failure else "cancelled"
        return BatchOfRun(batch=batch, state=state, unstored=unstored, cancelled=failure is None)
    return BatchOfRun(batch=batch, state=_state(status, batch), unstored=unstored)


def _state(status: BatchStatus | Failure, batch: BatchRecord) -> str:
    if isinstance(status, Failure):
        return f"cannot be read ({status.message})"
    if status.failure is not None:
        return status.failure.message
    return "ended" if status.ended else f"{status.answered:,} of {batch.requests:,} answered"
