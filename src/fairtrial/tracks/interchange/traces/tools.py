"""What tools were called with, what they returned, and what was retrieved, in the shapes that other tools record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairtrial.core.trace import ToolCall, short
from fairtrial.foreign.traces import text_of
from fairtrial.tracks.interchange.traces.call import content_text, parsed

_INSIDE = ("messages", "message", "choices", "output", "content", "parts")
_CALLS = ("tool_call", "tool_use", "function_call")
_RESULTS = ("tool_call_response", "tool_result", "function_call_output")
_TEXTS = ("page_content", "pageContent", "content", "text", "document", "chunk")
_MAX_DEPTH = 8


class _ToolRequest(NamedTuple):
    id: str
    tool: str
    arguments: Any


class _ToolResult(NamedTuple):
    id: str
    text: str
    error: bool


def tool_calls_in(*values: Any) -> tuple[ToolCall, ...]:
    """Return the calls of tools in messages, with their results if they are there."""
    found = [item for value in values for item in _items(value, 0)]
    results = {item.id: item for item in found if isinstance(item, _ToolResult)}
    requests = [item for item in found if isinstance(item, _ToolRequest)]
    once = {(item.id or number): item for number, item in enumerate(requests)}  # a history repeats what came before
    return tuple(tool_call(item.tool, item.arguments, results.get(item.id)) for item in once.values())


def tool_call(tool: str, arguments: Any, result: Any = None) -> ToolCall:
    """Return one call of a tool; arguments may be JSON in a text."""
    if isinstance(result, _ToolResult):
        return ToolCall(tool=tool, arguments=parsed(arguments), result=short(result.text), error=result.error)
    return ToolCall(tool=tool, arguments=parsed(arguments), result=short(text_of(result)))


def texts_in(documents: Any) -> tuple[str, ...]:
    """Return the texts of retrieved documents: a text, a list of texts, or objects that have one."""
    documents = parsed(documents)
    if isinstance(documents, dict):
        inner = next((documents[name] for name in ("documents", "results", "matches") if documents.get(name)), None)
        if inner is not None:
            return texts_in(inner)
        own = next((documents[name] for name in _TEXTS if documents.get(name) not in (None, "", [], {})), None)
        return texts_in(own) if own is not None else ()
    if isinstance(documents, list):
        return tuple(text for item in documents for text in texts_in(item))
    text = text_of(documents).strip()
    return (short(text),) if text else ()


def _items(value: Any, depth: int) -> Iterator[_ToolRequest | _ToolResult]:
    value = parsed(value)
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _items(item, depth + 1)
    elif isinstance(value, Mapping):
        yield from _object(value, depth)


def _object(value: Mapping[str, Any], depth: int) -> Iterator[_ToolRequest | _ToolResult]:
    kind, role = str(value.get("type") or ""), value.get("role")
    name = str(value.get("tool_call_id") or value.get("tool_use_id") or value.get("call_id") or value.get("id") or "")
    if kind in _CALLS and value.get("name"):
        given = next((value[key] for key in ("arguments", "input", "args") if value.get(key) is not None), None)
        yield _ToolRequest(name, str(value["name"]), given)
        return
    if kind in _RESULTS or role in ("tool", "function"):
        yield from _results(value, name)
        return
    calls = parsed(value.get("tool_calls"))
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            yield from _called(call)
    for key in _INSIDE:
        if isinstance(parsed(value.get(key)), list | dict):
            yield from _items(value[key], depth + 1)


def _results(value: Mapping[str, Any], name: str) -> Iterator[_ToolResult]:
    parts = value.get("parts")
    inner = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    answered = [part for part in inner if part.get("type") in _RESULTS]
    if answered:
        for part in answered:
            yield from _results({**part, "parts": None}, str(part.get("id") or name))
        return
    content = next(
        (value[key] for key in ("content", "response", "result", "output") if value.get(key) is not None), ""
    )
    text = content_text(content) or text_of(content)
    yield _ToolResult(name, text, bool(value.get("is_error") or value.get("error")))


def _called(call: Mapping[str, Any]) -> Iterator[_ToolRequest]:
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    tool = named.get("name") or (function if isinstance(function, str) else None)
    if tool:
        arguments = named.get("arguments", named.get("args"))
        yield _ToolRequest(str(call.get("id") or ""), str(tool), arguments)
