"""What is durable about a batch: that it was submitted, and which requests are in it."""

from __future__ import annotations

import msgspec


class BatchPlace(msgspec.Struct, frozen=True):
    """A request's place in a batch: its position there, its key among all requests of the run, and its maximum cost."""

    batch: int
    position: int
    key: str
    usd: float


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of a run, as stored; `id` is the provider's, None until it is known."""

    number: int
    target: str
    requests: int
    created_at: float
    id: str | None = None
    ended_at: float | None = None


def batch_name(run_id: str, number: int) -> str:
    """Return the name of a batch at its provider."""
    return f"{run_id}-{number}"


def request_name(run_id: str, number: int, position: int) -> str:
    """Return the name of a request in a batch."""
    return f"{batch_name(run_id, number)}-{position}"
