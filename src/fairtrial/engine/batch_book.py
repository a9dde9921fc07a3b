"""The durable record of a session's batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fairtrial.core.batch import BatchPlace, BatchRecord
from fairtrial.store import Store
from fairtrial.store.batches import batches_of, open_requests, void_batch
from fairtrial.store.lease import RunLease
from fairtrial.store.waiting import Waiting

Save = Callable[[BatchRecord, Sequence[BatchPlace]], Awaitable[None]]


class BatchBook:
    """Reads what earlier sessions left, and writes through the session's own transactions."""

    def __init__(self, store: Store, lease: RunLease, save: Save, waiting: Waiting) -> None:
        self.run_id = lease.run_id
        self._store, self._lease, self._save, self._waiting = store, lease, save, waiting
        self._records: dict[int, BatchRecord] = {}
        self._pending: dict[str, BatchPlace] = {}
        self._last = 0

    async def load(self) -> None:
        """Read the batches of earlier sessions, and the requests in them whose results are not stored."""
        batches = await self._waiting.call_in_thread(batches_of, self._store, self.run_id)
        places = await self._waiting.call_in_thread(open_requests, self._store, self.run_id) if batches else []
        self._records = {batch.number: batch for batch in batches}
        self._pending = {place.key: place for place in places}
        self._last = max(self._records, default=0)

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def pending(self, key: str) -> tuple[BatchPlace, BatchRecord] | None:
        place = self._pending.get(key)
        return None if place is None else (place, self._records[place.batch])

    async def save(self, batch: BatchRecord, places: Sequence[BatchPlace] = ()) -> None:
        if batch.number in self._records:
            self._records[batch.number] = batch
        await self._save(batch, places)

    async def void(self, batch: BatchRecord) -> None:
        await self._waiting.call_in_thread(void_batch, self._lease, batch)
        self._pending = {key: place for key, place in self._pending.items() if place.batch != batch.number}
