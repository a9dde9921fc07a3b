"""What Codex writes into the file of a session and does not print: rejected commands, and a shortened context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.record import Record, RecordPlace
from fairtrial.core.events import CallEvent, NoteEvent, ResultEvent
from fairtrial.core.trace import short

_REJECTED = re.compile(r"`(?P<command>.*)` rejected: (?P<reason>.*?)\\?\"\)", re.DOTALL)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_MESSAGE = "AgentMessage"  # one that it told; the summary of a context is none
_SHORTENED = "Codex shortened its context"


def add_untold(record: Record, home: Path) -> None:
    """Add to a record what the files of its session have beyond the events that Codex printed."""
    for file in sorted((home / "sessions").rglob("rollout-*.jsonl")):
        _add_from(record, list(_items(file)))


def _add_from(record: Record, items: list[dict[str, Any]]) -> None:
    rejected = dict(_rejections(items))
    messages = calls = 0
    for item in items:
        kind, name = item.get("type"), str(item.get("call_id"))
        if kind == _MESSAGE:
            messages, calls = messages + 1, 0
        elif kind == "compacted":
            record.insert(RecordPlace(messages, calls), NoteEvent(text=_SHORTENED))
        elif kind in _CALLS and name in rejected:
            record.insert(RecordPlace(messages, calls), *_call(name, *rejected[name]))
            calls += 1
        elif kind in _CALLS:
            calls += 1


def _items(file: Path) -> Iterator[dict[str, Any]]:
    """Yield what the model said, what its tools returned, what Codex printed, and where it shortened the context."""
    for line in file.read_bytes().splitlines():
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:  # the last line of a session that was killed
            continue
        kind, payload = entry.get("type"), entry.get("payload")
        if kind == "response_item" and isinstance(payload, dict):
            yield payload
        elif kind == "event_msg" and isinstance(payload, dict):
            yield {"type": (payload.get("item") or {}).get("type")}
        elif kind == "compacted":
            yield {"type": kind}


def _rejections(items: list[dict[str, Any]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the ids of calls that were rejected, each with its command and the reason."""
    for item in items:
        found = _REJECTED.search(str(item.get("output"))) if item.get("type") in _OUTPUTS else None
        if found and "Rejected(" in str(item["output"]):
            yield str(item.get("call_id")), (found["command"], f"rejected: {found['reason']}")


def _call(name: str, command: str, reason: str) -> tuple[CallEvent, ResultEvent]:
    call = CallEvent(id=name, tool="shell", arguments={"command": command})
    return call, ResultEvent(call=name, text=short(reason), error=True, rejected=True)
