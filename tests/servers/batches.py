"""The vendors' batch APIs on loopback, as strict as the real ones; official clients accept them.

They take hours by a clock of their own, which goes on by an hour whenever somebody looks at a batch. `asked` is the
ledger: what was handed in to be answered, and would have to be paid for.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from aiohttp import web

from tests.servers.vendors import Heard, Say, Vendors, dialect_of, served

START = 1_800_000_000
HOUR = 3600


@dataclass
class Job:
    """A batch: named requests, and what becomes of it."""

    id: str
    kind: str
    lines: list[tuple[str, Any]]
    created: int
    about: dict[str, Any] = field(default_factory=dict)
    hours: int = 3
    cancelled: bool = False
    results: dict[str, Any] | None = None  # by name: (status, body), or why there is none

    def over(self, now: int) -> bool:
        return self.cancelled or now >= self.created + self.hours * HOUR


def text_of(body: Any) -> str:
    """The last thing that somebody says in a request of any vendor."""
    texts = re.findall(r'"(?:content|text)": "((?:[^"\\]|\\.)*)"', json.dumps(body))
    return json.loads(f'"{texts[-1]}"') if texts else ""


class BatchVendors(Vendors):
    """`reply` says what the model says to a request; `hours` how long a batch takes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.hours = 3
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []  # the question of every request in every batch that was created
        self.reply: Callable[[str, Any], Say | str] = lambda text, body: Say(text=f"re: {text}")
        self.lose: list[str] = []  # paths of replies that are lost, once each, after the work is done
        self.refuse: list[tuple[str, int, Any]] = []  # path, status and body of errors to come, once each
        self.stop_at = ""  # a request whose reply never comes, although its work is done
        self.reached = asyncio.Event()  # it came to that
        self.crowd = 0  # more requests than this at a time fail

    async def serve(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path
        route = next((r for r in _ROUTES if r[0] == request.method and re.search(r[1], path)), None)
        if route is None:
            return await super().serve(request)
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        is_file = "upload" in headers.get("x-goog-upload-command", "") or path == "/v1/files"
        body = raw if is_file or not raw else json.loads(raw)
        self.heard.append(Heard(path, headers, body))
        # The address of an upload is a secret itself.
        if not path.startswith("/upload/x") and (refused := self._unauthorized(path, headers, raw)):
            return web.json_response(refused[1], status=refused[0])
        for fault in self.refuse:
            if re.search(fault[0], f"{request.method} {path}"):
                self.refuse.remove(fault)
                return web.json_response(fault[2], status=fault[1])
        reply = getattr(self, f"_{route[2]}")(re.search(route[1], path), body, headers)
        if self.stop_at and re.search(self.stop_at, f"{request.method} {path}"):
            self.reached.set()
            await asyncio.Event().wait()
        for pattern in self.lose:
            if re.search(pattern, f"{request.method} {path}"):
                self.lose.remove(pattern)
                assert request.transport is not None
                request.transport.abort()
        if isinstance(reply, web.Response):
            return reply
        status, value = reply if isinstance(reply, tuple) else (200, reply)
        return web.json_response(value, status=status)

    # -- what all have in common ---------------------------------------------------------------------

    def create(self, kind: str, lines: list[tuple[str, Any]], **about: Any) -> Job:
        names = [name for name, _ in lines]
        assert lines and len(set(names)) == len(names), "names must be unique"
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names), names
        job = Job(f"{kind}_{len(self.jobs) + 1}", kind, lines, self.now, about, self.hours)
        self.jobs[job.id] = job
        self.asked += [text_of(body) for _, body in lines]
        return job

    def find(self, batch: str, kind: str) -> Job | None:
        job = self.jobs.get(batch)
        return job if job and job.kind == kind else None

    def look(self, job: Job) -> Job:
        """Time goes on, and a batch that is over has results."""
        self.now += HOUR
        if job.over(self.now) and job.results is None:
            job.results = {}
            for number, (name, body) in enumerate(job.lines):
                say = self.reply(text_of(body), body)
                if job.cancelled and number:
                    say = "cancelled"
                job.results[name] = say if isinstance(say, str) else self.answer(job.kind, say, body, job.about)
        return job

    def answer(self, kind: str, say: Say, body: Any, about: dict[str, Any]) -> tuple[int, Any]:
        """What the vendor's direct API would say to the same request, with its strictness."""
        path = about["path"]
        dialect = dialect_of(path)
        refused = dialect.refusal(path, about.get("headers", {}), body)
        return refused or say.error or dialect.whole(say, body)

    # -- OpenAI --------------------------------------------------------------------------------------

    def _openai_upload(self, _: Any, body: bytes, headers: dict[str, str]) -> Any:
        message = BytesParser(policy=HTTP).parsebytes(
            b"Content-Type: " + headers["content-type"].encode() + b"\r\n\r\n" + body
        )
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        if parts["purpose"].get_content().strip() != "batch" or "file" not in parts:
            return 400, {"error": {"message": "Invalid purpose", "type": "invalid_request_error"}}
        name = f"file-{len(self.files) + 1}"
        self.files[name] = parts["file"].get_payload(decode=True)
        return {"id": name, "object": "file", "bytes": len(self.files[name]), "created_at": self.now,
                "filename": "b.jsonl", "purpose": "batch", "status": "processed"}  # fmt: skip

    def _openai_create(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        allowed = {"completion_window", "endpoint", "input_file_id", "metadata"}
        if set(body) - allowed or body.get("completion_window") != "24h" or body.get("input_file_id") not in self.files:
            return 400, {"error": {"message": f"Invalid batch: {body}", "type": "invalid_request_error"}}
        if any(not isinstance(v, str) or len(v) > 512 for v in (body.get("metadata") or {}).values()):
            return 400, {"error": {"message": "Invalid metadata", "type": "invalid_request_error"}}
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        for line in lines:
            assert set(line) == {"custom_id", "method", "url", "body"} and line["method"] == "POST"
            assert line["url"] == body["endpoint"] and "stream" not in line["body"], line
        given = [(line["custom_id"], line["body"]) for line in lines]
        crowd = self.crowd and len(given) > self.crowd
        asked = list(self.asked)
        job = self.create("openai", given, path=body["endpoint"], batch=body)
        if crowd:  # it fails when it is validated
            self.asked, job.about["crowded"], job.hours = asked, True, 1
        return self.openai_batch(job)

    def openai_batch(self, job: Job) -> dict[str, Any]:
        over, done = job.over(self.now), job.results or {}
        good = sum(isinstance(result, tuple) and result[0] == 200 for result in done.values())
        status = "in_progress" if self.now > job.created else "validating"
        if over:
            expired = any(result == "expired" for result in done.values())
            status = "cancelled" if job.cancelled else "expired" if expired else "completed"
        batch = {
            "id": job.id, "object": "batch", "endpoint": job.about["path"], "completion_window": "24h",
            "created_at": job.created, "expires_at": job.created + 24 * HOUR, "status": status,
            "input_file_id": job.about["batch"]["input_file_id"], "metadata": job.about["batch"].get("metadata"),
            "request_counts": {"total": len(job.lines), "completed": good, "failed": len(done) - good},
        }  # fmt: skip
        if over and job.about.get("crowded"):
            problem = {
                "code": "token_limit_exceeded",
                "message": "Enqueued token limit reached",
                "line": None,
                "param": None,
            }
            return {**batch, "status": "failed", "errors": {"object": "list", "data": [problem]}}
        if over:
            batch |= {"output_file_id": f"out-{job.id}" if good else None}
            batch |= {"error_file_id": f"err-{job.id}" if good < len(done) else None}
        return batch

    def _openai_list(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        jobs = [job for job in reversed(self.jobs.values()) if job.kind == "openai"]
        return {"object": "list", "data": [self.openai_batch(job) for job in jobs], "has_more": False}

    def _openai_look(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        job = self.find(match[1], "openai")
        return self.openai_batch(self.look(job)) if job else (404, {"error": {"message": "No such batch"}})

    def _openai_cancel(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        self.jobs[match[1]].cancelled = True
        return {**self.openai_batch(self.jobs[match[1]]), "status": "cancelling"}

    def _openai_content(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        which, batch = match[1].split("-", 1)
        lines = []
        for name, result in reversed((self.jobs[batch].results or {}).items()):
            good = isinstance(result, tuple) and result[0] == 200
            if good != (which == "out"):
                continue
            line: dict[str, Any] = {"id": f"br_{name}", "custom_id": name, "response": None, "error": None}
            if isinstance(result, tuple):
                line["response"] = {"status_code": result[0], "request_id": "r", "body": result[1]}
            else:
                line["error"] = {"code": f"batch_{result}", "message": f"This request was {result}."}
            lines.append(json.dumps(line))
        return web.Response(body="\n".join(lines).encode() + b"\n")

    # -- Anthropic -----------------------------------------------------------------------------------

    def _anthropic_create(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        if set(body) != {"requests"} or any(set(one) != {"custom_id", "params"} for one in body["requests"]):
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Extra inputs"}}
        if any(one["params"].get("stream") for one in body["requests"]):
            return 400, {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": "stream: not in a batch"},
            }
        lines = [(one["custom_id"], one["params"]) for one in body["requests"]]
        version = {"anthropic-version": headers["anthropic-version"]}
        return self.anthropic_batch(self.create("anthropic", lines, path="/v1/messages", headers=version))

    def anthropic_batch(self, job: Job) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        over = job.over(self.now) and job.results is not None
        if not over:
            counts["processing"] = len(job.lines)  # they stay so until the end
        for result in (job.results or {}).values() if over else ():
            counts[_anthropic_type(result)] += 1
        return {
            "id": job.id, "type": "message_batch", "processing_status": "ended" if over else "in_progress",
            "request_counts": counts, "created_at": _date(job.created), "expires_at": _date(job.created + 24 * HOUR),
            "ended_at": _date(self.now) if over else None, "cancel_initiated_at": None, "archived_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{job.id}/results" if over else None,
        }  # fmt: skip

    def _anthropic_list(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        jobs = [job for job in reversed(self.jobs.values()) if job.kind == "anthropic"]
        self.now += HOUR
        for job in jobs:
            self.look(job)
        return {
            "data": [self.anthropic_batch(job) for job in jobs],
            "has_more": False,
            "first_id": None,
            "last_id": None,
        }

    def _anthropic_look(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        job = self.find(match[1], "anthropic")
        missing = {"type": "error", "error": {"type": "not_found_error", "message": "no such batch"}}
        return self.anthropic_batch(self.look(job)) if job else (404, missing)

    def _anthropic_cancel(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        self.jobs[match[1]].cancelled = True
        return {**self.anthropic_batch(self.jobs[match[1]]), "processing_status": "canceling"}

    def _anthropic_results(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        lines = []
        for name, result in reversed((self.jobs[match[1]].results or {}).items()):
            kind = _anthropic_type(result)
            found: dict[str, Any] = {"type": kind}
            if kind == "succeeded":
                found["message"] = result[1]
            elif kind == "errored":
                error = result[1].get("error", result[1])
                found["error"] = {"type": "error", "request_id": "r", "error": error}
            lines.append(json.dumps({"custom_id": name, "result": found}))
        return web.Response(body="\n".join(lines).encode(), headers={"Content-Type": "application/binary"})

    # -- Google --------------------------------------------------------------------------------------

    def _google_start(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        assert headers["x-goog-upload-command"] == "start" and headers["x-goog-upload-protocol"] == "resumable"
        url = {"x-goog-upload-url": f"{self.url}/upload/x{len(self.files) + 1}", "x-goog-upload-status": "active"}
        return web.json_response({}, headers=url)

    def _google_upload(self, match: Any, body: bytes, headers: dict[str, str]) -> Any:
        assert headers["x-goog-upload-command"] == "upload, finalize" and headers["x-goog-upload-offset"] == "0"
        name = f"files/f{match[1]}"
        self.files[name] = body
        file = {"name": name, "uri": "u", "mimeType": "jsonl"}
        return web.json_response({"file": file}, headers={"x-goog-upload-status": "final"})

    def _google_create(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        batch = body["batch"]
        if set(batch) - {"displayName", "inputConfig"} or batch["inputConfig"].get("fileName") not in self.files:
            return 400, {"error": {"code": 400, "message": f"bad batch {batch}", "status": "INVALID_ARGUMENT"}}
        lines = [json.loads(line) for line in self.files[batch["inputConfig"]["fileName"]].splitlines()]
        assert all(set(line) == {"key", "request"} for line in lines)
        path = f"{match[1]}:generateContent"
        given = [(line["key"], line["request"]) for line in lines]
        return self.google_batch(self.create("google", given, path=path, batch=batch))

    def google_batch(self, job: Job) -> dict[str, Any]:
        over = job.over(self.now) and job.results is not None
        about = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": job.about["path"].partition("/v1/")[2].partition(":")[0],
            "displayName": job.about["batch"].get("displayName"),
            "createTime": _date(job.created), "updateTime": _date(self.now), "name": f"batches/{job.id}",
            "batchStats": {"requestCount": str(len(job.lines)), "pendingRequestCount": str(len(job.lines))},
            "state": "BATCH_STATE_RUNNING",
        }  # fmt: skip
        batch = {"name": f"batches/{job.id}", "metadata": about}
        if not over:
            return batch
        state = "CANCELLED" if job.cancelled else "SUCCEEDED"
        about["state"], output = f"BATCH_STATE_{state}", {"responsesFile": f"files/out-{job.id}"}
        return {**batch, "metadata": {**about, "output": output}, "done": True, "response": {"@type": "x", **output}}

    def _google_list(self, _: Any, body: Any, headers: dict[str, str]) -> Any:
        return {"operations": [self.google_batch(job) for job in reversed(self.jobs.values()) if job.kind == "google"]}

    def _google_look(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        job = self.find(match[1], "google")
        missing = {"error": {"code": 404, "message": "no such batch", "status": "NOT_FOUND"}}
        return self.google_batch(self.look(job)) if job else (404, missing)

    def _google_cancel(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        self.jobs[match[1]].cancelled = True
        return {}

    def _google_download(self, match: Any, body: Any, headers: dict[str, str]) -> Any:
        lines = []
        for name, result in (self.jobs[match[1]].results or {}).items():
            if isinstance(result, tuple) and result[0] == 200:
                lines.append(json.dumps({"key": name, "response": result[1]}))
                continue
            code = (
                {"expired": 4, "cancelled": 1}.get(result, 13) if isinstance(result, str) else _GRPC.get(result[0], 13)
            )
            message = result if isinstance(result, str) else result[1]["error"]["message"]
            lines.append(json.dumps({"key": name, "error": {"code": code, "message": message}}))
        return web.Response(body="\n".join(lines).encode())


_GRPC = {400: 3, 404: 5, 429: 8, 500: 13, 503: 14}
_ROUTES = (
    ("POST", r"^/v1/files$", "openai_upload"),
    ("POST", r"^/v1/batches$", "openai_create"),
    ("GET", r"^/v1/batches(\?limit=.*)$", "openai_list"),
    ("GET", r"^/v1/batches/(openai_\d+)$", "openai_look"),
    ("POST", r"^/v1/batches/(openai_\d+)/cancel$", "openai_cancel"),
    ("GET", r"^/v1/files/((?:out|err)-[^/]+)/content$", "openai_content"),
    ("POST", r"^/v1/messages/batches(\?.*)?$", "anthropic_create"),
    ("GET", r"^/v1/messages/batches(\?.*)?$", "anthropic_list"),
    ("GET", r"^/v1/messages/batches/([^/?]+)(?:\?.*)?$", "anthropic_look"),
    ("POST", r"^/v1/messages/batches/([^/?]+)/cancel(?:\?.*)?$", "anthropic_cancel"),
    ("GET", r"^/v1/messages/batches/([^/?]+)/results(?:\?.*)?$", "anthropic_results"),
    ("POST", r"^/upload/v1/files$", "google_start"),
    ("POST", r"^/upload/x(\d+)$", "google_upload"),
    ("POST", r"^(/v1/models/[^:]+):batchGenerateContent$", "google_create"),
    ("GET", r"^/v1/batches(?:\?pageSize=.*)?$", "google_list"),
    ("GET", r"^/v1/batches/(google_\d+)$", "google_look"),
    ("POST", r"^/v1/batches/(google_\d+):cancel$", "google_cancel"),
    ("GET", r"^/v1/files/out-([^:]+):download\?alt=media$", "google_download"),
)


def _anthropic_type(result: Any) -> str:
    if isinstance(result, str):
        return {"cancelled": "canceled"}.get(result, result)
    return "succeeded" if result[0] == 200 else "errored"


def _date(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@asynccontextmanager
async def batch_vendors() -> AsyncIterator[BatchVendors]:
    """Serve until the block ends."""
    async with served(BatchVendors(), 2**28) as model:
        yield model
