"""What agents of one's own report about themselves: taken where it makes sense, left out with a note where it does not.

A report is a mapping, or an object with the same names:

    text            the answer; the one thing that is required
    cost_usd        what the session cost
    usage           tokens as OpenAI or Anthropic name them; or `prompt_tokens` and `completion_tokens` beside `text`
    tool_calls      a list of calls, in the shape of MCP, OpenAI, LangChain, or our own
    trace           a mapping of whatever else is worth keeping
    finish_reason, model
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.experiment import McpServer
from fairtrial.core.trace import short

_TOKENS = {  # our names for tokens, and those that reports may have
    "prompt": ("prompt_tokens", "input_tokens"),
    "completion": ("completion_tokens", "output_tokens"),
    "cache_read": ("cache_read_tokens", "cache_read_input_tokens"),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens"),
    "reasoning": ("reasoning_tokens",),
}
_MOST_TOKENS = 10**9
_MOST_USD = 10**6
_FIELDS = ("text", "cost_usd", "usage", "tool_calls", "trace", "finish_reason", "model")
_READ = {*_FIELDS, *(name for names in _TOKENS.values() for name in names)} - {"tool_calls"}
_SURE = ("__", ".", "/", ":")  # signs that stand between a server's name and its tool's, and hardly inside a name


def as_answer(result: Any, servers: Sequence[McpServer], latency_ms: float) -> Answer | Failure:
    """An answer from whatever an agent returned."""
    if isinstance(result, str):
        return Answer(text=result, latency_ms=latency_ms)
    if isinstance(result, Failure):
        return result
    if isinstance(result, Answer):
        return _checked(result, servers, latency_ms)
    report = _report(result)
    if report is None:
        what = type(result).__name__
        return Failure(kind="malformed", message=f"the agent returned {what}, neither a text nor a report with `text`")
    notes: list[str] = []
    return Answer(
        text=report["text"],
        finish_reason=_text(report.get("finish_reason")),
        model=_text(report.get("model")),
        usage=_usage(report, notes),
        cost_usd=_cost(report.get("cost_usd"), notes),
        trace=_trace(report, servers, notes),
        latency_ms=latency_ms,
    )


def called(calls: Iterable[Any], servers: Sequence[McpServer]) -> list[Any]:
    """Tool calls in our own shape, each with the server that it went to, where that is certain."""
    return [_call(_plain(call), servers) for call in calls]


def _checked(answer: Answer, servers: Sequence[McpServer], latency_ms: float) -> Answer:
    """An answer in our own shape is believed no more than a report."""
    notes: list[str] = []
    usage = answer.usage
    if usage is not None and not all(_whole(value) for value in msgspec.structs.astuple(usage)):
        notes.append(f"tokens left out: {usage} is no count")
        usage = None
    return msgspec.structs.replace(
        answer,
        usage=usage,
        cost_usd=_cost(answer.cost_usd, notes),
        trace=_trace({"trace": answer.trace}, servers, notes),
        latency_ms=answer.latency_ms or latency_ms,
    )


def _report(result: Any) -> dict[str, Any] | None:
    """A report as a mapping; None where there is no text in it."""
    if isinstance(result, Mapping):
        report = dict(result)
    else:
        report = {name: getattr(result, name) for name in sorted({*_READ, "tool_calls"}) if hasattr(result, name)}
    return report if isinstance(report.get("text"), str) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _usage(report: dict[str, Any], notes: list[str]) -> Usage | None:
    found = _plain(report.get("usage"))
    tokens = {**report, **found} if isinstance(found, Mapping) else report
    counts: dict[str, int] = {}
    for ours, names in _TOKENS.items():
        name = next((name for name in names if tokens.get(name) is not None), None)
        if name is None:
            continue
        if _whole(tokens[name]):
            counts[ours] = int(tokens[name])
        else:
            notes.append(f"{name} left out: {tokens[name]!r} is no number of tokens")
    if "prompt" not in counts and "completion" not in counts:
        return None
    return Usage(**counts)


def _whole(value: Any) -> bool:
    """Whether this can be a number of tokens."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(0 <= value <= _MOST_TOKENS and value == int(value))


def _cost(value: Any, notes: list[str]) -> float | None:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isfinite(value) and 0 <= value <= _MOST_USD:
        return float(value)
    notes.append(f"cost_usd left out: {value!r} is no cost in dollars")
    return None


def _trace(report: dict[str, Any], servers: Sequence[McpServer], notes: list[str]) -> dict[str, Any] | None:
    """Everything that has no place elsewhere; tool calls in one shape."""
    more = report.get("trace")
    trace = {name: value for name, value in report.items() if name not in _READ}
    trace |= dict(more) if isinstance(more, Mapping) else {} if more is None else {"trace": more}
    calls = trace.pop("tool_calls", None)
    if isinstance(calls, list | tuple):
        trace["tool_calls"] = called(calls, servers)
    elif calls is not None:
        notes.append(f"tool_calls left out: {type(calls).__name__} is no list")
    if notes:
        trace["left_out"] = notes
    return trace or None


def _plain(value: Any) -> Any:
    """A mapping from an object of another library, which usually knows how to become one."""
    for name in ("model_dump", "_asdict", "dict"):
        if not isinstance(value, Mapping) and callable(getattr(value, name, None)):
            try:
                return getattr(value, name)()
            except Exception:
                return value
    return value


def _call(call: Any, servers: Sequence[McpServer]) -> Any:
    """One call with the names that the rest of the program reads; what is no call stays as it is."""
    if isinstance(call, str):
        call = {"tool": call}
    if not isinstance(call, Mapping):
        return call
    inner = _plain(call.get("function"))
    inner = inner if isinstance(inner, Mapping) else {}
    name = _first({**inner, **call}, "tool", "tool_name", "name")
    if not isinstance(name, str):
        return dict(call)
    server, tool = call.get("server"), name
    if server is None:
        server, tool = _place(name, servers)
    result = _first(call, "result", "output", "content")
    return {
        "tool": tool,
        "server": server,
        "arguments": _arguments(_first({**inner, **call}, "arguments", "args", "input", "parameters")),
        "result": result if result is None else short(result if isinstance(result, str) else repr(result)),
        "error": bool(_first(call, "error", "is_error", "isError")) or call.get("status") in ("error", "failed"),
        **({"duration_ms": call["duration_ms"]} if "duration_ms" in call else {}),
    }


def _first(mapping: Mapping[str, Any], *names: str) -> Any:
    return next((mapping[name] for name in names if mapping.get(name) is not None), None)


def _arguments(value: Any) -> Any:
    """Arguments, which some write as a text of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _place(name: str, servers: Sequence[McpServer]) -> tuple[str | None, str]:
    """The server and tool that a name means; no server where that is not certain: then it is a tool of the agent's own.

    A prefix may name the server, with or without `mcp` before it; else the tool must be one server's alone.
    """
    exact = [server.name for server in servers if name in server.tools]
    if exact:
        return (exact[0] if len(exact) == 1 else None), name
    bare = name[5:] if name.startswith("mcp__") else name[4:] if name.startswith("mcp_") else name
    for server in sorted(servers, key=lambda server: -len(server.name)):
        rest = bare.removeprefix(server.name)
        if rest == bare:
            continue
        for sign in _SURE:
            if rest.startswith(sign) and len(rest) > len(sign):
                return server.name, rest.removeprefix(sign)
        if rest[:1] in ("_", "-") and rest[1:] in server.tools:
            return server.name, rest[1:]
    return None, name
