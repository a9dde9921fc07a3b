"""Gemini's batches: a file of requests and a file of results, by the keys of the requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.providers.batch import BatchApi, BatchError, BatchStatus, before_asking, cancelled, expired
from fairtrial.providers.streams import read_body

_MEDIA = "jsonl"
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"})
# Results have codes of gRPC, replies to direct calls those of HTTP.
_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 16: 401}


class _RemoteFile(msgspec.Struct):
    name: str


class _Uploaded(msgspec.Struct):
    file: _RemoteFile


class _BatchOutput(msgspec.Struct, rename="camel"):
    responses_file: str = ""


class _Stats(msgspec.Struct, rename="camel"):
    successful_request_count: Any = 0
    failed_request_count: Any = 0


class _About(msgspec.Struct, rename="camel"):
    state: str = ""
    display_name: str = ""
    batch_stats: _Stats = msgspec.field(default_factory=_Stats)
    output: _BatchOutput | None = None


class _Batch(msgspec.Struct):
    name: str
    metadata: _About = msgspec.field(default_factory=_About)
    error: Any = None
    response: _BatchOutput | None = None

    @property
    def state(self) -> str:
        return self.metadata.state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")


class _BatchPage(msgspec.Struct, rename="camel"):
    operations: list[_Batch] = []
    next_page_token: str = ""


class _Problem(msgspec.Struct):
    code: Any = None
    message: Any = None


class _Line(msgspec.Struct):
    key: str
    response: msgspec.Raw = msgspec.Raw()
    error: _Problem | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


class GoogleBatches(BatchApi):
    """Batches at Google."""

    def _url(self, path: str, *, upload: bool = False, query: str = "") -> str:
        """Return an address next to that of the models."""
        model = urlsplit(str(self.target.url()))
        before, _, version = model.path.partition("/models/")[0].rpartition("/")
        path = f"{before}/upload/{version}/{path}" if upload else f"{before}/{version}/{path}"
        return urlunsplit(model._replace(path=path, query=query))

    def address(self, batch: str, action: str = "") -> str:
        return self._url(quote(batch) + (f":{action}" if action else ""))

    def line(self, name: str, request: Request) -> bytes:
        return msgspec.json.encode({"key": name, "request": self.target.body(request)})

    async def submit(self, name: str, lines: Sequence[bytes]) -> str | Failure:
        file = await self._upload(name, b"".join(line + b"\n" for line in lines))
        if isinstance(file, Failure):
            return before_asking(file)
        made = {"batch": {"displayName": name, "inputConfig": {"fileName": file}}}
        url = self._url(f"models/{quote(self.target.spec.model)}:batchGenerateContent")
        batch = await self.call_for(_Batch, "POST", url, body=msgspec.json.encode(made))
        return batch if isinstance(batch, Failure) else batch.name

    async def _upload(self, name: str, body: bytes) -> str | Failure:
        headers = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Header-Content-Length": str(len(body)),
            "X-Goog-Upload-Header-Content-Type": _MEDIA,
        }
        about = {"file": {"display_name": name, "mime_type": _MEDIA, "size_bytes": len(body)}}

        async def place(response: Any) -> str:
            await read_body(response)
            return str(response.headers.get("x-goog-upload-url") or "")

        url = await self.call(
            "POST",
            self._url("files", upload=True),
            place,
            body=msgspec.json.encode(about),
            headers={**headers, "X-Goog-Upload-Command": "start"},
        )
        if isinstance(url, Failure):
            return url
        if urlsplit(url).netloc != urlsplit(self._url("files")).netloc:  # our key goes there, too
            return Failure(kind="malformed", message="the server wants files to be sent to another server")
        end = {**headers, "X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        uploaded = await self.call_for(_Uploaded, "POST", url, body=body, headers=end)
        return uploaded if isinstance(uploaded, Failure) else uploaded.file.name

    async def find(self, name: str, first: str, count: int, since: float) -> str | Failure | None:
        token = ""
        while True:
            query = "pageSize=100" + (f"&pageToken={quote(token, safe='')}" if token else "")
            listed = await self.call_for(_BatchPage, "GET", self._url("batches", query=query))
            if isinstance(listed, Failure):
                return listed
            for batch in listed.operations:
                if batch.metadata.display_name == name:
                    return batch.name
            token = listed.next_page_token
            if not token:
                return None

    async def _batch(self, batch: str) -> _Batch | Failure:
        return await self.call_for(_Batch, "GET", self.address(batch))

    async def look(self, batch: str) -> BatchStatus | Failure:
        found = await self._batch(batch)
        if isinstance(found, Failure):
            return found
        stats = found.metadata.batch_stats
        answered = _count(stats.successful_request_count) + _count(stats.failed_request_count)
        if found.state not in _ENDED or _results_file(found):
            return BatchStatus(ended=found.state in _ENDED, answered=answered)
        return BatchStatus(ended=True, failure=_why_none(found))

    async def files(self, batch: str) -> Sequence[str]:
        found = await self._batch(batch)
        if isinstance(found, Failure):
            raise BatchError(found)
        return (self._url(f"{quote(_results_file(found))}:download", query="alt=media"),)

    def read_line(self, line: bytes) -> tuple[str, Answer | Failure]:
        result = _decode_line(line)
        if result.error is None:
            return result.key, self.read(result.response)
        status = _STATUS.get(result.error.code, 500)
        body = msgspec.json.encode({"error": {"code": status, "message": result.error.message}})
        return result.key, self.read_error(status, body)


def _results_file(batch: _Batch) -> str:
    outputs = (batch.metadata.output, batch.response)
    return next((output.responses_file for output in outputs if output and output.responses_file), "")


def _why_none(batch: _Batch) -> Failure:
    if batch.state == "EXPIRED":
        return expired()
    if batch.state == "CANCELLED":
        return cancelled()
    error = batch.error if isinstance(batch.error, dict) else {}
    return Failure(kind="refused", message=f"the batch failed: {error.get('message') or 'no reason given'}")


def _count(value: Any) -> int:
    """Return a number that Google writes as a string."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
