"""One batch in the making, or on its way: the requests in it, who waits for them, and what is durable about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.batch import BatchPlace, BatchRecord


class BatchRecords(Protocol):
    """The durable record of batches and of the requests in them."""

    run_id: str

    def next_number(self) -> int:
        """Return the number of a new batch."""

    def pending(self, key: str) -> tuple[BatchPlace, BatchRecord] | None:
        """Return where a request is that an earlier session submitted, or may have submitted."""

    async def save(self, batch: BatchRecord, places: Sequence[BatchPlace] = ()) -> None:
        """Store a batch and its requests."""

    async def void(self, batch: BatchRecord) -> None:
        """Note that a batch was not submitted or has no results: its requests are asked again."""


class Delivered(NamedTuple):
    """The result of a request, and where it was; without a place, it is left to the next session."""

    result: Answer | Failure
    place: BatchPlace | None = None


class Entry(NamedTuple):
    """A request that waits for its result."""

    key: str
    request: Request
    usd: float
    line: bytes
    reply: asyncio.Future[Delivered]


class BatchSlice:
    """The entries of one batch by their positions, and how far it is."""

    def __init__(self, record: BatchRecord) -> None:
        self.record = record
        self.entries: dict[int, Entry] = {}
        self.size = 0
        self.answered = 0
        self.followed = False
        self.stalled = False  # it waits until others have ended

    def place(self, position: int) -> BatchPlace:
        entry = self.entries[position]
        return BatchPlace(self.record.number, position, entry.key, entry.usd)

    def waiting(self) -> dict[int, Entry]:
        """Return the entries that are waited for."""
        return {position: entry for position, entry in self.entries.items() if not entry.reply.done()}
