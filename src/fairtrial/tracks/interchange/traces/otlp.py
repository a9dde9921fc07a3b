"""OTLP as JSON: what the OpenTelemetry collector writes into files, as one object or one per line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial.foreign.traces import Aside, Call
from fairtrial.tracks.interchange.traces.spans import span_aside, span_call
from fairtrial.tracks.interchange.traces.stream import objects

_FAILED = (2, "STATUS_CODE_ERROR", "2")


def recognises(path: Path, head: bytes) -> bool:
    """Return whether a file is of this format."""
    return b'"resourceSpans"' in head or b'"scopeSpans"' in head


def calls(path: Path) -> Iterator[Call]:
    """Yield the calls among the spans of a file."""
    for span in objects(path, {"spans"}):
        events = span.get("events")
        call = span_call(
            attributes_of(span.get("attributes")),
            [
                (str(event.get("name")), attributes_of(event.get("attributes")))
                for event in (events if isinstance(events, list) else ())
                if isinstance(event, dict)
            ],
            id=str(span.get("spanId") or ""),
            trace=str(span.get("traceId") or ""),
            name=str(span.get("name") or ""),
            started_at=_time(span.get("startTimeUnixNano")),
            error=error_of(span.get("status")),
        )
        if call is not None:
            yield call


def asides(path: Path) -> Iterator[Aside]:
    """Yield the tools that were called and the texts that were retrieved."""
    for span in objects(path, {"spans"}):
        attributes = attributes_of(span.get("attributes"))
        aside = span_aside(attributes, str(span.get("traceId") or ""), str(span.get("name") or ""))
        if aside is not None:
            yield aside


def attributes_of(items: Any) -> dict[str, Any]:
    """Return OTLP's list of attributes as a mapping."""
    if isinstance(items, dict):
        return items
    pairs = (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))
    return {str(item.get("key")): _value(item.get("value")) for item in pairs}


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for kind, content in value.items():
        if kind == "arrayValue":
            return [_value(item) for item in (content or {}).get("values") or ()]
        if kind == "kvlistValue":
            return attributes_of((content or {}).get("values"))
        if kind == "intValue":
            return int(content)
        return content
    return None


def _time(nanoseconds: Any) -> str:
    try:
        return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def error_of(status: Any) -> str:
    """Return why a span failed; empty if it did not."""
    if not isinstance(status, dict) or status.get("code") not in _FAILED:
        return ""
    return str(status.get("message") or "error")
