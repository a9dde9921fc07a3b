"""Batches of a run and the requests in them, until their results are stored."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from sqlalchemy import func, select, update

from fairtrial.core.batch import BatchPlace, BatchRecord
from fairtrial.store import schema
from fairtrial.store.lease import RunLease
from fairtrial.store.store import Store


def batch_row(run_id: str, batch: BatchRecord) -> dict[str, Any]:
    """Return the row of a batch."""
    row = msgspec.structs.asdict(batch)
    return {"run_id": run_id, "batch_id": row.pop("id"), **row}


def request_row(run_id: str, place: BatchPlace, *, done: bool) -> dict[str, Any]:
    """Return the row of a request in a batch; it is done once its result is stored, or if it was never submitted."""
    return {"run_id": run_id, **msgspec.structs.asdict(place), "done": done}


def batches_of(store: Store, run_id: str) -> list[BatchRecord]:
    """Return the batches of a run, in the order in which they were submitted."""
    table = schema.batches
    fields = [table.c.batch_id if name == "id" else table.c[name] for name in BatchRecord.__struct_fields__]
    query = select(*fields).where(table.c.run_id == run_id).order_by(table.c.number)
    return [BatchRecord(**dict(zip(BatchRecord.__struct_fields__, row, strict=True))) for row in store.fetch(query)]


def open_requests(store: Store, run_id: str) -> list[BatchPlace]:
    """Return the requests of a run that were submitted, or may have been, and whose results are not stored."""
    table = schema.batch_requests
    query = select(table.c.batch, table.c.position, table.c.key, table.c.usd)
    return [BatchPlace(*row) for row in store.fetch(query.where(table.c.run_id == run_id, table.c.done.is_(False)))]


def open_counts(store: Store, run_id: str) -> dict[int, int]:
    """Return how many requests of each batch have no stored result."""
    table = schema.batch_requests
    query = select(table.c.batch, func.count()).where(table.c.run_id == run_id, table.c.done.is_(False))
    return dict(store.fetch(query.group_by(table.c.batch)))


def void_batch(lease: RunLease, batch: BatchRecord) -> None:
    """Note that a batch was not submitted, or has no results: its requests cost nothing, and are asked again."""
    requests, batches = schema.batch_requests, schema.batches
    of_batch = (requests.c.run_id == lease.run_id, requests.c.batch == batch.number)
    with lease.writing() as connection:
        connection.execute(update(requests).where(*of_batch).values(done=True))
        this = (batches.c.run_id == lease.run_id, batches.c.number == batch.number)
        connection.execute(update(batches).where(*this).values(ended_at=time.time()))
