"""What replies have beside their text, read leniently: a good answer is never thrown away over its decoration.

A count that cannot be true (negative, or more than a number holds exactly) is not believed: it is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, TOOL_CALLS, Usage
from fairtrial.core.trace import ToolCall, Trace

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # what decoding a reply may raise

_decode = msgspec.json.Decoder().decode
_MOST = 2**53  # beyond it, a number does not even count exactly
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": TOOL_CALLS,
    "function_call": TOOL_CALLS,
    "refusal": REFUSED,
    "content_filter": FILTERED,
}


def loose(raw: msgspec.Raw) -> Any:
    """A part of a reply that nothing depends on; None where it cannot be read."""
    try:
        return _decode(raw) if raw else None
    except UNREADABLE:
        return None


def name_of(value: Any) -> str | None:
    """A name, where it is one."""
    return value if isinstance(value, str) and value else None


def finish_of(reason: Any) -> str | None:
    """Why an answer ended, in the words that all providers share here."""
    return _FINISH.get(reason, reason) if isinstance(reason, str) else None


def tokens(value: Any) -> int | None:
    """A count of tokens, or None where it cannot be one; nothing counts as 0 only where 0 was said."""
    if type(value) is int:  # mostly; and no bool
        return value if 0 <= value <= _MOST else None
    return int(value) if type(value) is float and 0 <= value <= _MOST and value == int(value) else None


def openai_usage(found: Any) -> Usage | None:
    """The usage of a chat completion; cached and reasoning tokens are inside the others."""
    usage = _mapping(found)
    prompt, completion = tokens(usage.get("prompt_tokens")), tokens(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    cached = _detail(usage.get("prompt_tokens_details"), "cached_tokens")
    thought = _detail(usage.get("completion_tokens_details"), "reasoning_tokens")
    return Usage(
        prompt=prompt,
        completion=completion,
        cache_read=cached if cached <= prompt else 0,
        reasoning=thought if thought <= completion else 0,
    )


def openai_cost(found: Any) -> float | None:
    """What a router says it charged."""
    cost = _mapping(found).get("cost")
    return float(cost) if _is_number(cost) and 0 <= cost <= _MOST else None


def anthropic_usage(found: Any) -> Usage | None:
    """The usage of a message; what the cache read and wrote stands beside `input_tokens`."""
    usage = _mapping(found)
    fresh, completion = tokens(usage.get("input_tokens")), tokens(usage.get("output_tokens"))
    read, written = (tokens(usage.get(f"cache_{what}_input_tokens") or 0) for what in ("read", "creation"))
    if fresh is None or completion is None or read is None or written is None:
        return None
    thought = _detail(usage.get("output_tokens_details"), "thinking_tokens")
    return Usage(
        prompt=fresh + read + written,
        completion=completion,
        cache_read=read,
        cache_write=written,
        reasoning=thought if thought <= completion else 0,
    )


def refusal_text(details: Any) -> str:
    """What a provider says about a refusal that has no words of its own."""
    found = _mapping(details)
    return ": ".join(part for part in (name_of(found.get("category")), name_of(found.get("explanation"))) if part)


def calls_trace(calls: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Calls of tools that a model asked for and nobody made, (name, arguments) each, as they are kept."""
    return Trace(
        tool_calls=tuple(ToolCall(tool=str(name), arguments=_arguments(given)) for name, given in calls)
    ).as_dict()


def _arguments(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return msgspec.json.decode(given)
    except UNREADABLE:
        return given


def _detail(found: Any, name: str) -> int:
    return (tokens(found.get(name)) or 0) if isinstance(found, dict) else 0


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
