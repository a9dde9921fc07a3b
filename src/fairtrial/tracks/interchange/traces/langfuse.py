"""Langfuse's exports: observations or traces from its tables, its blob storage or its API; JSON, JSON Lines or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairtrial.foreign.traces import Aside, Call, text_of
from fairtrial.tracks.interchange.traces.call import parsed, said
from fairtrial.tracks.interchange.traces.logfire import table_rows
from fairtrial.tracks.interchange.traces.tools import texts_in, tool_call, tool_calls_in

_LISTS = {"", "data", "observations", "traces", "generations"}
_MARKS = (b"trace_id", b"traceId", b'"observations"', b"sessionId", b"session_id", b"totalCost", b"bookmarked")


def recognises(path: Path, head: bytes) -> bool:
    """Return whether a file is of this format."""
    return b"input" in head and b"output" in head and any(mark in head for mark in _MARKS)


def calls(path: Path) -> Iterator[Call]:
    """Yield the calls in a file: of a trace its generations, or the trace itself if it has none."""
    for row in table_rows(path, _LISTS):
        inner = _observations(row)
        generations = [item for item in inner if _is_generation(item) and item.get("input") not in (None, "")]
        for item in generations:
            yield from _call({**_shared(row), **{name: value for name, value in item.items() if value is not None}})
        if not generations and _is_generation(row):
            yield from _call(row)


def asides(path: Path) -> Iterator[Aside]:
    """Yield the tools that were called and the texts that were retrieved."""
    for row in table_rows(path, _LISTS):
        trace = _first(row, "id") if "observations" in row else ""
        for item in (row, *_observations(row)):
            own = _first(item, "trace_id", "traceId") or trace
            kind = str(item.get("type") or "").upper()
            if kind == "RETRIEVER":
                yield Aside(trace=own, contexts=texts_in(item.get("output")))
            elif kind == "TOOL":
                called = tool_call(_first(item, "name") or "tool", item.get("input"), item.get("output"))
                yield Aside(trace=own, tool_calls=(called,))


def _observations(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    observations = parsed(row.get("observations"))
    return [item for item in observations if isinstance(item, dict)] if isinstance(observations, list) else []


def _is_generation(row: Mapping[str, Any]) -> bool:
    return str(row.get("type") or "GENERATION").upper() == "GENERATION"


def _shared(trace: Mapping[str, Any]) -> dict[str, Any]:
    names = ("tags", "sessionId", "session_id", "userId", "user_id", "scores", "metadata")
    return {**{name: trace[name] for name in names if name in trace}, "traceId": trace.get("id")}


def _call(row: Mapping[str, Any]) -> Iterator[Call]:
    asked = said(row.get("input"))
    if not any(message.role == "user" for message in asked):
        return
    answered = said(row.get("output"), "assistant")
    metadata, tags = parsed(row.get("metadata")), parsed(row.get("tags") or row.get("trace_tags"))
    failed = str(row.get("level") or "").upper() == "ERROR"
    yield Call(
        id=_first(row, "id"),
        trace=_first(row, "trace_id", "traceId"),
        name=_first(row, "name", "trace_name", "traceName"),
        model=_first(row, "model", "provided_model_name", "providedModelName", "model_id"),
        started_at=_first(row, "start_time", "startTime", "timestamp"),
        session=_first(row, "session_id", "sessionId"),
        user=_first(row, "user_id", "userId"),
        error=_first(row, "status_message", "statusMessage") or "error" if failed else "",
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        messages=tuple(asked),
        answer="\n".join(message.text for message in answered if message.text) or None,
        tool_calls=tool_calls_in(row.get("input"), row.get("output")),
        metadata={**_labels(row), **(metadata if isinstance(metadata, dict) else {})},
        scores=_scores(parsed(row.get("scores"))),
    )


def _labels(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("expected_output", "expectedOutput") if row.get(name) not in (None, "")}


def _scores(scores: Any) -> dict[str, Any]:
    """Return scores by name: of the API's list of scores, or of the columns of a table."""
    if isinstance(scores, dict):
        return scores
    if not isinstance(scores, list):
        return {}
    named = [score for score in scores if isinstance(score, dict) and score.get("name")]
    return {str(s["name"]): s["value"] if s.get("value") is not None else s.get("stringValue") for s in named}


def _first(row: Mapping[str, Any], *names: str) -> str:
    return next((text_of(row[name]) for name in names if row.get(name) not in (None, "")), "")
