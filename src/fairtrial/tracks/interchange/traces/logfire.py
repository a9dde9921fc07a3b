"""Logfire's rows (`records`): OpenTelemetry spans with their attributes in one column; CSV, JSON or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtrial.foreign.traces import Aside, Call
from fairtrial.tables import format_of as table_format
from fairtrial.tables import rows_of
from fairtrial.tables.row import TableError
from fairtrial.tracks.interchange.traces.call import parsed
from fairtrial.tracks.interchange.traces.spans import Attributes, span_aside, span_call
from fairtrial.tracks.interchange.traces.stream import objects

_LISTS = {"", "rows", "data", "records"}


def recognises(path: Path, head: bytes) -> bool:
    """Return whether a file is of this format."""
    if table_format(path) == "parquet":
        return True  # neither of the others is
    return b"span_name" in head and b"attributes" in head


def calls(path: Path) -> Iterator[Call]:
    """Yield the calls among the rows of a file."""
    for row, attributes in _spans(path):
        events = parsed(row.get("otel_events"))
        tags = parsed(row.get("tags"))
        call = span_call(
            attributes,
            [
                (str(event.get("event_name") or event.get("name")), event.get("attributes") or event)
                for event in (events if isinstance(events, list) else ())
                if isinstance(event, dict)
            ],
            id=str(row.get("span_id") or ""),
            trace=str(row.get("trace_id") or ""),
            name=str(row.get("span_name") or ""),
            started_at=str(row.get("start_timestamp") or ""),
            error=str(row.get("exception_message") or ""),
            tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        )
        if call is not None:
            yield call


def asides(path: Path) -> Iterator[Aside]:
    """Yield the tools that were called and the texts that were retrieved."""
    for row, attributes in _spans(path):
        aside = span_aside(attributes, str(row.get("trace_id") or ""), str(row.get("span_name") or ""))
        if aside is not None:
            yield aside


def _spans(path: Path) -> Iterator[tuple[dict[str, Any], Attributes]]:
    for row in table_rows(path, _LISTS):
        attributes = parsed(row.get("attributes"))
        if isinstance(attributes, dict):
            yield row, attributes


def table_rows(path: Path, lists: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table; of JSON, the objects of lists under these keys, without reading the file at once."""
    if table_format(path) in ("json", None):
        yield from objects(path, lists)
        return
    for row in rows_of(path):
        if row.problem:
            raise TableError(row.problem, row.line)
        yield row.fields
