"""Reading of reports by the user's own agents; values that make no sense are left out, with a note.

A report is a mapping, or an object with the same attributes:

    text            the answer; the one thing that is required
    cost_usd        what the session cost
    usage           tokens as OpenAI or Anthropic name them; or `prompt_tokens` and `completion_tokens` next to `text`
    tool_calls      a list of calls, in the format of MCP, OpenAI, LangChain, or fairtrial
    events          instead of these, what happened in its order (`core/events.py`)
    trace           a mapping of anything else worth keeping
    limit           the limit that ended its work: time, turns, tokens or money; or {"kind": …, "value": …}
    finish_reason, model
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import LIMITS, Answer, Failure, Usage
from fairtrial.core.events import CallEvent, Event, LimitKind, ResultEvent, as_data
from fairtrial.core.experiment import McpServer
from fairtrial.core.trace import short, with_views

_TOKENS = {  # our names of the token counts, and those in reports
    "prompt": ("prompt_tokens", "input_tokens"),
    "completion": ("completion_tokens", "output_tokens"),
    "cache_read": ("cache_read_tokens", "cache_read_input_tokens"),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens"),
    "reasoning": ("reasoning_tokens",),
}
_MAX_TOKENS = 10**9
_MAX_USD = 10**6
_FIELDS = ("text", "cost_usd", "usage", "tool_calls", "events", "trace", "finish_reason", "model", "limit")
_READ = {*_FIELDS, *(name for names in _TOKENS.values() for name in names)} - {"tool_calls"}
_SEPARATORS = ("__", ".", "/", ":")  # used between a server's name and its tool's, and hardly ever inside a name


def as_answer(result: Any, servers: Sequence[McpServer], latency_ms: float) -> Answer | Failure:
    """Convert whatever an agent returned into an answer."""
    if isinstance(result, str):
        return Answer(text=result, latency_ms=latency_ms)
    if isinstance(result, Failure):
        return result
    if isinstance(result, Answer):
        return _checked(result, servers, latency_ms)
    report = _report(result)
    if report is None:
        name = type(result).__name__
        return Failure(kind="malformed", message=f"the agent returned {name}: return a string, or a report with `text`")
    notes: list[str] = []
    limit, limit_value = _limit(report.get("limit"), notes)
    return Answer(
        limit=limit,
        limit_value=limit_value,
        text=report["text"],
        finish_reason=_text(report.get("finish_reason")),
        model=_text(report.get("model")),
        usage=_usage(report, notes),
        cost_usd=_cost(report.get("cost_usd"), notes),
        trace=_trace(report, servers, notes),
        latency_ms=latency_ms,
    )


def normalise_calls(calls: Iterable[Any], servers: Sequence[McpServer]) -> list[Any]:
    """Convert tool calls into our own format, each with its server if that is certain."""
    return [_normalise_call(_as_mapping(call), servers) for call in calls]


def _checked(answer: Answer, servers: Sequence[McpServer], latency_ms: float) -> Answer:
    """Check an `Answer` as strictly as a report."""
    notes: list[str] = []
    usage = answer.usage
    if usage is not None and not all(_is_token_count(value) for value in msgspec.structs.astuple(usage)):
        notes.append(f"tokens left out: {usage} is not a valid count")
        usage = None
    return msgspec.structs.replace(
        answer,
        usage=usage,
        cost_usd=_cost(answer.cost_usd, notes),
        trace=_trace({"trace": answer.trace}, servers, notes),
        latency_ms=answer.latency_ms or latency_ms,
    )


def _report(result: Any) -> dict[str, Any] | None:
    """Return a report as a mapping; None if it has no text."""
    if isinstance(result, Mapping):
        report = dict(result)
    else:
        report = {name: getattr(result, name) for name in sorted({*_READ, "tool_calls"}) if hasattr(result, name)}
    if isinstance(report.get("text"), str):
        return report
    return _from_message(result)


def _from_message(result: Any) -> dict[str, Any] | None:
    """Read a message as chat libraries have them (`content`), or a mapping with `output` or a list of `messages`."""
    if isinstance(result, Mapping):
        messages = result.get("messages")
        if isinstance(messages, list | tuple) and messages:
            return _from_message(messages[-1])
        content = result.get("content", result.get("output"))
        found = dict(result)
    else:
        content = getattr(result, "content", None)
        names = ("usage", "usage_metadata", "tool_calls")
        found = {name: getattr(result, name) for name in names if getattr(result, name, None)}
    text = _content_text(content)
    if text is None:
        return None
    report = {"text": text, "usage": found.get("usage") or found.get("usage_metadata")}
    return {**report, "tool_calls": found["tool_calls"]} if found.get("tool_calls") else report


def _content_text(content: Any) -> str | None:
    """Return the text of a message, whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    parts = [part if isinstance(part, str) else _as_mapping(part) for part in content]
    return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts if part)


def _limit(value: Any, notes: list[str]) -> tuple[LimitKind | None, float | None]:
    """Return the limit that an agent says it has reached, and how high that is."""
    told = value if isinstance(value, Mapping) else {"kind": value}
    kind = next((kind for kind in LIMITS if kind == told.get("kind")), None)
    if kind is None:
        if value is not None:
            notes.append(f"limit left out: {value!r} is none of {', '.join(LIMITS)}")
        return None, None
    high = told.get("value")
    known = isinstance(high, int | float) and not isinstance(high, bool) and math.isfinite(high) and high >= 0
    return kind, float(high) if known else None  # type: ignore[arg-type]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _usage(report: dict[str, Any], notes: list[str]) -> Usage | None:
    usage = _as_mapping(report.get("usage"))
    tokens = {**report, **usage} if isinstance(usage, Mapping) else report
    counts: dict[str, int] = {}
    for ours, names in _TOKENS.items():
        name = next((name for name in names if tokens.get(name) is not None), None)
        if name is None:
            continue
        if _is_token_count(tokens[name]):
            counts[ours] = int(tokens[name])
        else:
            notes.append(f"{name} left out: {tokens[name]!r} is not a number of tokens")
    if "prompt" not in counts and "completion" not in counts:
        return None
    return Usage(**counts)


def _is_token_count(value: Any) -> bool:
    """Return whether a value can be a number of tokens."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(0 <= value <= _MAX_TOKENS and value == int(value))


def _cost(value: Any, notes: list[str]) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and 0 <= value <= _MAX_USD:
        return float(value)
    notes.append(f"cost_usd left out: {value!r} is not a cost in dollars")
    return None


def _trace(report: dict[str, Any], servers: Sequence[McpServer], notes: list[str]) -> dict[str, Any] | None:
    """Collect everything that has no field of its own; tool calls are converted into one format."""
    reported = report.get("trace")
    trace = {name: value for name, value in report.items() if name not in _READ}
    trace |= dict(reported) if isinstance(reported, Mapping) else {} if reported is None else {"trace": reported}
    calls = trace.pop("tool_calls", None)
    events = _events(report.get("events"), servers, notes)
    if events:
        trace["events"] = as_data(events)
        if calls is not None:
            notes.append("tool_calls left out: the events have the calls")
    elif isinstance(calls, list | tuple):
        trace["tool_calls"] = normalise_calls(calls, servers)
    elif calls is not None:
        notes.append(f"tool_calls left out: {type(calls).__name__} is not a list")
    if notes:
        trace["left_out"] = notes
    return with_views(trace) or None


def _events(values: Any, servers: Sequence[McpServer], notes: list[str]) -> list[Event]:
    """Read the events of a report one by one; what is none is left out, and so are results that answer no call."""
    if values is None:
        return []
    if not isinstance(values, list | tuple):
        notes.append(f"events left out: {type(values).__name__} is not a list")
        return []
    found: list[Event] = []
    waiting: set[str] = set()
    called: set[str] = set()
    for number, value in enumerate(values, start=1):
        try:
            event = msgspec.convert(_as_mapping(value), Event)
            found.append(_placed(event, servers, called, waiting))
        except ValueError as error:  # msgspec's are ValueErrors, too
            notes.append(f"event {number} left out: {error}")
    return found


def _placed(event: Event, servers: Sequence[McpServer], called: set[str], waiting: set[str]) -> Event:
    """Return an event of a report, which is about one turn, with its server if that is certain."""
    if isinstance(event, CallEvent):
        if event.id in called:
            raise ValueError(f"there was a call `{event.id}` before")
        called.add(event.id)
        waiting.add(event.id)
        if event.server is None:
            server, tool = _split_tool_name(event.tool, servers)
            event = msgspec.structs.replace(event, server=server, tool=tool)
    elif isinstance(event, ResultEvent):
        if event.call not in waiting:
            raise ValueError(f"no call `{event.call}` waits for a result")
        waiting.remove(event.call)
        event = msgspec.structs.replace(event, text=short(event.text))
    return msgspec.structs.replace(event, turn=1)


def _as_mapping(value: Any) -> Any:
    """Convert an object of another library into a mapping, if it has a method for that."""
    for name in ("model_dump", "_asdict", "dict"):
        if not isinstance(value, Mapping) and callable(getattr(value, name, None)):
            try:
                return getattr(value, name)()
            except Exception:
                return value
    return value


def _normalise_call(call: Any, servers: Sequence[McpServer]) -> Any:
    """Return a call under the field names used here; anything that is not a call stays unchanged."""
    if isinstance(call, str):
        call = {"tool": call}
    if not isinstance(call, Mapping):
        return call
    function = _as_mapping(call.get("function"))
    function = function if isinstance(function, Mapping) else {}
    name = _first({**function, **call}, "tool", "tool_name", "name")
    if not isinstance(name, str):
        return dict(call)
    server, tool = call.get("server"), name
    if server is None:
        server, tool = _split_tool_name(name, servers)
    result = _first(call, "result", "output", "content")
    return {
        "tool": tool,
        "server": server,
        "arguments": _arguments(_first({**function, **call}, "arguments", "args", "input", "parameters")),
        "result": result if result is None else short(result if isinstance(result, str) else repr(result)),
        "error": bool(_first(call, "error", "is_error", "isError")) or call.get("status") in ("error", "failed"),
        **({"duration_ms": call["duration_ms"]} if "duration_ms" in call else {}),
    }


def _first(mapping: Mapping[str, Any], *names: str) -> Any:
    return next((mapping[name] for name in names if mapping.get(name) is not None), None)


def _arguments(value: Any) -> Any:
    """Return the arguments, decoded if they are JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _split_tool_name(name: str, servers: Sequence[McpServer]) -> tuple[str | None, str]:
    """Split a tool's name into server and tool; None if the server is not certain: then it is the agent's own tool.

    A prefix may name the server, with or without `mcp` before it; otherwise exactly one server must have the tool.
    """
    exact = [server.name for server in servers if name in server.tools]
    if exact:
        return (exact[0] if len(exact) == 1 else None), name
    bare = name[5:] if name.startswith("mcp__") else name[4:] if name.startswith("mcp_") else name
    for server in sorted(servers, key=lambda server: -len(server.name)):
        rest = bare.removeprefix(server.name)
        if rest == bare:
            continue
        for separator in _SEPARATORS:
            if rest.startswith(separator) and len(rest) > len(separator):
                return server.name, rest.removeprefix(separator)
        if rest[:1] in ("_", "-") and rest[1:] in server.tools:
            return server.name, rest[1:]
    return None, name
