"""Anthropic's message batches: requests in the body, results as one file. They have no name, only their requests do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from fairtrial.core.answer import PENDING, Answer, Failure, Request
from fairtrial.providers.batch import BatchApi, BatchError, BatchStatus, cancelled, expired
from fairtrial.providers.transport import endpoint


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.errored + self.canceled + self.expired


class _Batch(msgspec.Struct):
    id: str
    processing_status: str = ""
    created_at: str = ""
    request_counts: _Counts = msgspec.field(default_factory=_Counts)


class _BatchPage(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _RequestResult(msgspec.Struct):
    type: str = ""
    message: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    result: _RequestResult


_decode_line = msgspec.json.Decoder(_Line).decode
_ENDS = {"expired": expired, "canceled": cancelled}


class AnthropicBatches(BatchApi):
    """Message batches at Anthropic."""

    def _url(self, *parts: str) -> str:
        return endpoint(self.target.spec.base_url, "/".join(("/v1/messages/batches", *parts)))

    def address(self, batch: str, action: str = "") -> str:
        return self._url(quote(batch, safe=""), *filter(None, (action,)))

    def line(self, name: str, request: Request) -> bytes:
        return msgspec.json.encode({"custom_id": name, "params": self.target.body(request)})

    async def submit(self, name: str, lines: Sequence[bytes]) -> str | Failure:
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        batch = await self.call_for(_Batch, "POST", self._url(), body=body)
        return batch if isinstance(batch, Failure) else batch.id

    async def find(self, name: str, first: str, count: int, since: float) -> str | Failure | None:
        """Look into the results of every batch of this size: only there are the names of requests to be found."""
        after, pending = "", None
        while True:
            listed = await self.call_for(_BatchPage, "GET", f"{self._url()}?limit=100{after}")
            if isinstance(listed, Failure):
                return listed
            for batch in listed.data:
                if self.is_before(_seconds(batch.created_at), since):
                    return pending
                if batch.request_counts.processing + batch.request_counts.ended != count:
                    continue
                if batch.processing_status != "ended":
                    pending = Failure(
                        kind=PENDING,
                        message="a batch of this size is in progress, and only its results tell whether it is this one",
                        retryable=True,
                    )
                elif await self._has(batch.id, first.rpartition("-")[0]):
                    return batch.id
            if not listed.data or not listed.has_more:
                return pending
            after = f"&after_id={quote(listed.data[-1].id)}"

    async def _has(self, batch: str, prefix: str) -> bool:
        """Return whether the first result of a batch belongs to a request whose name begins like this."""
        try:
            async for name, _ in self.results(batch):
                return name.startswith(f"{prefix}-")
        except BatchError as error:
            if error.failure.kind != "model":  # otherwise its results are not kept any more
                raise
        return False

    async def look(self, batch: str) -> BatchStatus | Failure:
        found = await self.call_for(_Batch, "GET", self.address(batch))
        if isinstance(found, Failure):
            return found
        return BatchStatus(ended=found.processing_status == "ended", answered=found.request_counts.ended)

    async def files(self, batch: str) -> Sequence[str]:
        return (self.address(batch, "results"),)

    def read_line(self, line: bytes) -> tuple[str, Answer | Failure]:
        read = _decode_line(line)
        result = read.result
        if result.type in _ENDS:
            return read.custom_id, _ENDS[result.type]()
        # An error has the form of a reply that is an error.
        return read.custom_id, self.read(result.message if result.type == "succeeded" else result.error)


def _seconds(date: Any) -> float:
    try:
        return datetime.fromisoformat(str(date)).timestamp()
    except ValueError:
        return float("inf")
