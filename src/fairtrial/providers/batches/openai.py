"""OpenAI's batches: a file of requests, and two files of results. Chat completions and Responses alike."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.providers.batch import BatchApi, BatchError, BatchStatus, cancelled, expired, not_readable
from fairtrial.providers.replies import UNREADABLE
from fairtrial.providers.streams import read_body
from fairtrial.providers.transport import endpoint

_NAME = "fairtrial"  # the key of our name for a batch in its metadata
_KEPT = 30 * 24 * 3600  # seconds until the provider deletes the file of requests
_A_DAY = 86_400.0  # how far its clock and ours may differ, and more
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_CROWDED = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})


class _File(msgspec.Struct):
    id: str


class _Counts(msgspec.Struct):
    completed: int = 0
    failed: int = 0


class _Problem(msgspec.Struct):
    code: Any = None
    message: Any = None


class _Problems(msgspec.Struct):
    data: list[_Problem] | None = None


class _Batch(msgspec.Struct):
    id: str
    status: str = ""
    created_at: float = 0.0
    metadata: dict[str, Any] | None = None
    request_counts: _Counts | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Problems | None = None


class _Batches(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: _Problem | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


class OpenaiBatches(BatchApi):
    """Batches at OpenAI."""

    def _url(self, path: str) -> str:
        return endpoint(self.target.spec.base_url, path)

    def line(self, name: str, request: Request) -> bytes:
        where = f"/v1{self.target.conversation.path}"
        body = self.target.body(request)
        return msgspec.json.encode({"custom_id": name, "method": "POST", "url": where, "body": body})

    async def submit(self, name: str, lines: Sequence[bytes]) -> str | Failure:
        body, content_type = _form(f"{name}.jsonl", lines)
        headers = {"Content-Type": content_type}
        file = await self.call_for(_File, "POST", self._url("/files"), body=body, headers=headers)
        if isinstance(file, Failure):  # nothing is asked yet, so there is nothing to be unsure about
            return msgspec.structs.replace(file, maybe_billed=False, kind=_plain(file.kind))
        made = {
            "completion_window": "24h",
            "endpoint": f"/v1{self.target.conversation.path}",
            "input_file_id": file.id,
            "metadata": {_NAME: name},
        }
        batch = await self.call_for(_Batch, "POST", self._url("/batches"), body=msgspec.json.encode(made))
        return batch if isinstance(batch, Failure) else batch.id

    async def find(self, name: str, first: str, count: int, since: float) -> str | Failure | None:
        after = ""
        while True:
            listed = await self.call_for(_Batches, "GET", self._url("/batches") + f"?limit=100{after}")
            if isinstance(listed, Failure):
                return listed
            for batch in listed.data:
                if (batch.metadata or {}).get(_NAME) == name:
                    return batch.id
            if not listed.data or not listed.has_more or listed.data[-1].created_at < since - _A_DAY:
                return None
            after = f"&after={quote(listed.data[-1].id)}"

    async def _batch(self, batch: str) -> _Batch | Failure:
        return await self.call_for(_Batch, "GET", self._url(f"/batches/{quote(batch, safe='')}"))

    async def look(self, batch: str) -> BatchStatus | Failure:
        found = await self._batch(batch)
        if isinstance(found, Failure):
            return found
        counts = found.request_counts or _Counts()
        answered = counts.completed + counts.failed
        if found.status != "failed":
            return BatchStatus(ended=found.status in _ENDED, answered=answered)
        problems = (found.errors.data if found.errors else None) or [_Problem(message="no reason given")]
        reasons = "; ".join(dict.fromkeys(str(problem.message or problem.code) for problem in problems[:5]))
        failure = Failure(kind="refused", message=f"the batch failed: {reasons}")
        crowded = any(problem.code in _CROWDED for problem in problems)
        return BatchStatus(ended=True, failure=failure, crowded=crowded)

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Answer | Failure]]:
        found = await self._batch(batch)
        if isinstance(found, Failure):
            raise BatchError(found)
        for file in filter(None, (found.output_file_id, found.error_file_id)):
            async with self.download(self._url(f"/files/{quote(file, safe='')}/content")) as lines:
                async for line in lines:
                    yield self._result(line)

    def _result(self, line: bytes) -> tuple[str, Answer | Failure]:
        try:
            result = _decode_line(line)
        except UNREADABLE as error:
            raise not_readable(line, error) from error
        if result.response is not None:
            status = result.response.status_code
            read = self.read if status == 200 else lambda body: self.read_error(status, bytes(body))
            return result.custom_id, read(result.response.body)
        error_ = result.error or _Problem()
        if error_.code == "batch_expired":
            return result.custom_id, expired()
        if error_.code == "batch_cancelled":
            return result.custom_id, cancelled()
        body = msgspec.json.encode({"error": {"code": error_.code, "message": error_.message}})
        return result.custom_id, self.read_error(400, body)

    async def cancel(self, batch: str) -> Failure | None:
        done = await self.call("POST", self._url(f"/batches/{quote(batch, safe='')}/cancel"), read_body)
        return done if isinstance(done, Failure) else None


def _plain(kind: str) -> str:
    return "connection" if kind == "malformed" else kind


def _form(name: str, lines: Sequence[bytes]) -> tuple[bytes, str]:
    """Return a form with a file of lines, and its content type."""
    boundary = secrets.token_hex(16)
    fields = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": str(_KEPT)}
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in fields.items()
    )
    head += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    head += "Content-Type: application/octet-stream\r\n\r\n"
    body = b"".join((head.encode(), *(line + b"\n" for line in lines), f"\r\n--{boundary}--\r\n".encode()))
    return body, f"multipart/form-data; boundary={boundary}"
