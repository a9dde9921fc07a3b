"""Spans that providers report while they answer, and the assertions about them."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

_PLACE = "promptfoo_spans"  # one receiver for each port in a process, however often this file is loaded
_QUIET, _PATIENCE = 0.3, 5.0  # seconds without a further span, and at most


def traced(port: int, ask: Callable[[Any], Any]) -> Any:
    """Call a provider with a trace of its own, and add the spans that it sends (OTLP over HTTP) to its report."""
    spans = received(port)
    trace = os.urandom(16).hex()
    context = {
        "traceparent": f"00-{trace}-{os.urandom(8).hex()}-01", "evaluationId": "fairtrial", "testCaseId": trace
    }  # fmt: skip
    report = ask(context)
    report = {"text": report} if isinstance(report, str) else dict(report)
    found = _settled(spans, trace)
    calls = [{"tool": tool, "arguments": _arguments(span)} for span in found if (tool := _tool(span))]
    if calls and not report.get("tool_calls"):
        report["tool_calls"] = calls
    return {**report, "trace": {**(report.get("trace") or {}), "spans": found}}


def received(port: int) -> dict[str, list[Any]]:
    """Return the spans that arrive at a port, by trace; the first call begins to listen."""
    places: dict[int, dict[str, list[Any]]] = sys.modules.setdefault(_PLACE, {})  # type: ignore[arg-type,assignment]
    if port not in places:
        places[port] = {}
        _listen(port, places[port])
    return places[port]


def _listen(port: int, spans: dict[str, list[Any]]) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                for trace, span in _decoded(body, str(self.headers.get("Content-Type"))):
                    spans.setdefault(trace, []).append(span)
                self.send_response(200)
            except (ValueError, ImportError):
                self.send_response(415)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    except OSError:
        return  # the checks say that there are no spans
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _decoded(body: bytes, kind: str) -> list[tuple[str, Any]]:
    if "protobuf" in kind:  # pip install opentelemetry-proto
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        data = MessageToDict(ExportTraceServiceRequest.FromString(body))
    else:
        data = json.loads(body)
    rows = [
        span
        for resource in data.get("resourceSpans") or []
        for scope in resource.get("scopeSpans") or []
        for span in scope.get("spans") or []
    ]
    return [(_hex(span["traceId"]), _span(span)) for span in rows]


def _hex(trace: str) -> str:
    return trace if len(trace) == 32 else base64.b64decode(trace).hex()


def _span(span: dict[str, Any]) -> dict[str, Any]:
    """Return what the checks need of a span."""
    begin, end = (int(span.get(key) or 0) / 1e6 for key in ("startTimeUnixNano", "endTimeUnixNano"))
    attributes = {one["key"]: next(iter(one["value"].values()), None) for one in span.get("attributes") or []}
    code = (span.get("status") or {}).get("code")
    failed = code in (2, "STATUS_CODE_ERROR", "ERROR")
    return {"name": span["name"], "ms": end - begin, "start": begin, "failed": failed, "attributes": attributes}


def _settled(spans: dict[str, list[Any]], trace: str) -> list[Any]:
    """Return the spans of a trace once no further ones come."""
    begun = last = time.monotonic()
    count = 0
    while (now := time.monotonic()) - begun < _PATIENCE and (now - last < _QUIET or not count):
        if len(spans.get(trace, ())) != count:
            count, last = len(spans[trace]), now
        time.sleep(0.02)
    return sorted(spans.pop(trace, []), key=lambda span: span["start"])


def _tool(span: dict[str, Any]) -> str | None:
    """Return the tool that a span is a call of; None if it is none."""
    for key in ("tool.name", "gen_ai.tool.name", "tool_name", "mcp.tool.name"):
        if span["attributes"].get(key):
            return str(span["attributes"][key])
    return span["name"].removeprefix("execute_tool ") if span["name"].startswith("execute_tool ") else None


def _arguments(span: dict[str, Any]) -> Any:
    keys = ("tool.arguments", "gen_ai.tool.call.arguments", "tool.args", "tool.input", "tool.parameters")
    text = next((span["attributes"][key] for key in keys if span["attributes"].get(key)), "{}")
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return {}


def spans_of(trace: Any, pattern: str = "*") -> list[Any]:
    """Return the spans of an answer whose names fit; raise an error if none were recorded at all."""
    spans = (trace or {}).get("spans")
    if not spans:
        raise RuntimeError("no spans were recorded: the provider must send them to the address of the receiver")
    return [span for span in spans if fnmatchcase(span["name"], pattern)]


def count_spans(trace: Any, pattern: str = "*", min: int | None = None, max: int | None = None) -> Any:
    """Return whether there are as many spans as there should be."""
    number = len(spans_of(trace, pattern))
    fits = (min is None or number >= min) and (max is None or number <= max)
    return {"pass": fits, "score": float(fits), "reason": f"{number} spans of {pattern}"}


def spans_are_quick(trace: Any, max: float, pattern: str = "*", percentile: float | None = None) -> Any:
    """Return whether spans took no longer than they should: all of them, or a percentile."""
    times = sorted(span["ms"] for span in spans_of(trace, pattern))
    if not times:
        return {"pass": True, "score": 1.0, "reason": f"no spans of {pattern}"}
    share = 1.0 if percentile is None else percentile / 100
    slowest = times[int(-(-len(times) * share // 1)) - 1]
    return {"pass": slowest <= max, "score": float(slowest <= max), "reason": f"{slowest:.0f} ms"}


def spans_are_sound(
    trace: Any, pattern: str = "*", max_count: int | None = None, max_percentage: float | None = None
) -> Any:
    """Return whether no more spans failed than may."""
    spans = spans_of(trace, pattern)
    failed = sum(1 for span in spans if span["failed"])
    share = 100 * failed / len(spans) if spans else 0.0
    limit = 0 if max_count is None and max_percentage is None else max_count
    fits = (limit is None or failed <= limit) and (max_percentage is None or share <= max_percentage)
    return {"pass": fits, "score": float(fits), "reason": f"{failed} of {len(spans)} spans failed"}
