"""OpenAI's batches: a file of requests, and two files of results. Chat completions and Responses alike."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.providers.batch import BatchApi, BatchError, BatchStatus, before_asking, cancelled, expired
from fairtrial.providers.transport import endpoint

_NAME = "fairtrial"  # the key of our name for a batch in its metadata
_KEPT = 30 * 24 * 3600  # seconds until the provider deletes the file of requests
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_CROWDED = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})


class _RemoteFile(msgspec.Struct):
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


class _BatchPage(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _HttpResponse(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct):
    custom_id: str
    response: _HttpResponse | None = None
    error: _Problem | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


class OpenaiBatches(BatchApi):
    """Batches at OpenAI."""

    def _url(self, path: str) -> str:
        return endpoint(self.target.spec.base_url, path)

    def address(self, batch: str, action: str = "") -> str:
        return self._url(f"/batches/{quote(batch, safe='')}" + (f"/{action}" if action else ""))

    def line(self, name: str, request: Request) -> bytes:
        where = f"/v1{self.target.conversation.path}"
        body = self.target.body(request)
        return msgspec.json.encode({"custom_id": name, "method": "POST", "url": where, "body": body})

    async def submit(self, name: str, lines: Sequence[bytes]) -> str | Failure:
        body, content_type = _form(f"{name}.jsonl", lines)
        headers = {"Content-Type": content_type}
        file = await self.call_for(_RemoteFile, "POST", self._url("/files"), body=body, headers=headers)
        if isinstance(file, Failure):
            return before_asking(file)
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
            listed = await self.call_for(_BatchPage, "GET", self._url("/batches") + f"?limit=100{after}")
            if isinstance(listed, Failure):
                return listed
            for batch in listed.data:
                if (batch.metadata or {}).get(_NAME) == name:
                    return batch.id
            if not listed.data or not listed.has_more or self.is_before(listed.data[-1].created_at, since):
                return None
            after = f"&after={quote(listed.data[-1].id)}"

    async def _batch(self, batch: str) -> _Batch | Failure:
        return await self.call_for(_Batch, "GET", self.address(batch))

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

    async def files(self, batch: str) -> Sequence[str]:
        found = await self._batch(batch)
        if isinstance(found, Failure):
            raise BatchError(found)
        names = filter(None, (found.output_file_id, found.error_file_id))
        return [self._url(f"/files/{quote(name, safe='')}/content") for name in names]

    def read_line(self, line: bytes) -> tuple[str, Answer | Failure]:
        result = _decode_line(line)
        if result.response is not None:
            status = result.response.status_code
            read = self.read if 200 <= status < 300 else lambda body: self.read_error(status, bytes(body))
            return result.custom_id, read(result.response.body)
        problem = result.error or _Problem()
        if problem.code == "batch_expired":
            return result.custom_id, expired()
        if problem.code == "batch_cancelled":
            return result.custom_id, cancelled()
        body = msgspec.json.encode({"error": {"code": problem.code, "message": problem.message}})
        return result.custom_id, self.read_error(400, body)


def _form(name: str, lines: Sequence[bytes]) -> tuple[bytes, str]:
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
