"""Read the metadata of replies leniently: a good answer is never discarded because its metadata is malformed.

An impossible count (negative, or too large to be exact as a number) is treated as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, TOOL_CALLS, Usage
from fairtrial.core.trace import ToolCall, Trace

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # what decoding a reply may raise

_decode = msgspec.json.Decoder().decode
_MAX_EXACT = 2**53  # larger numbers are not exact as floats
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": TOOL_CALLS,
    "function_call": TOOL_CALLS,
    "refusal": REFUSED,
    "content_filter": FILTERED,
    "content_filtered": FILTERED,
    "guardrail_intervened": FILTERED,
    "model_length": "length",
    "max_output_tokens": "length",
}


def decode_or_none(raw: msgspec.Raw) -> Any:
    """Decode an optional part of a reply; return None if it cannot be read."""
    try:
        return _decode(raw) if raw else None
    except UNREADABLE:
        return None


def is_first(index: Any) -> bool:
    """Return whether a piece belongs to the first of several answers."""
    return type(index) is not int or index == 0


def place_of_first(indices: Sequence[Any]) -> int:
    """Return which of several answers in one reply is the first by its index; an index that is left out is 0."""
    numbers = [index if type(index) is int else 0 for index in indices]
    return numbers.index(min(numbers))


def text_or_none(value: Any) -> str | None:
    """Return the value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def finish_of(reason: Any) -> str | None:
    """Return why an answer ended, in the terms that fairtrial uses for all providers."""
    return _FINISH.get(reason, reason) if isinstance(reason, str) else None


def tokens(value: Any) -> int | None:
    """Return a token count, or None if the value is not one; only an explicit 0 counts as 0."""
    if type(value) is int:  # the usual case; excludes bool
        return value if 0 <= value <= _MAX_EXACT else None
    return int(value) if type(value) is float and 0 <= value <= _MAX_EXACT and value == int(value) else None


def openai_usage(reply: Any) -> Usage | None:
    """Return the usage of a chat completion; cached and reasoning tokens are included in the other counts."""
    return _openai_usage(reply, "prompt_tokens", "completion_tokens")


def responses_usage(reply: Any) -> Usage | None:
    """Return the usage of a response, in the same way."""
    return _openai_usage(reply, "input_tokens", "output_tokens")


def _openai_usage(reply: Any, prompt: str, completion: str) -> Usage | None:
    usage = _mapping(reply)
    read, written = usage.get(f"{prompt}_details"), usage.get(f"{completion}_details")
    return _usage(
        usage.get("total_tokens"),
        prompt=tokens(usage.get(prompt)),
        completion=tokens(usage.get(completion)),
        cache_read=_detail(read, "cached_tokens"),
        cache_write=_detail(read, "cache_write_tokens"),
        reasoning=_detail(written, "reasoning_tokens"),
    )


def google_usage(reply: Any) -> Usage | None:
    """Return the usage of Gemini; cached tokens are part of the prompt, thoughts come on top of the answer."""
    usage = _mapping(reply)
    thoughts = _detail(usage, "thoughtsTokenCount")
    return _usage(
        usage.get("totalTokenCount"),
        prompt=_sum(tokens(usage.get("promptTokenCount")), _detail(usage, "toolUsePromptTokenCount")),
        completion=_sum(_detail(usage, "candidatesTokenCount"), thoughts),
        cache_read=_detail(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
    )


def bedrock_usage(reply: Any) -> Usage | None:
    """Return the usage of Converse; tokens read from and written to the cache come on top of `inputTokens`."""
    usage = _mapping(reply)
    read, written = _detail(usage, "cacheReadInputTokens"), _detail(usage, "cacheWriteInputTokens")
    return _usage(
        usage.get("totalTokens"),
        prompt=_sum(tokens(usage.get("inputTokens")), read, written),
        completion=tokens(usage.get("outputTokens")),
        cache_read=read,
        cache_write=written,
    )


def openai_cost(reply: Any) -> float | None:
    """Return the cost that a router reports."""
    cost = _mapping(reply).get("cost")
    return float(cost) if _is_number(cost) and 0 <= cost <= _MAX_EXACT else None


def anthropic_usage(reply: Any) -> Usage | None:
    """Return the usage of a message; tokens read from and written to the cache come on top of `input_tokens`."""
    usage = _mapping(reply)
    read, written = _detail(usage, "cache_read_input_tokens"), _detail(usage, "cache_creation_input_tokens")
    return _usage(
        prompt=_sum(tokens(usage.get("input_tokens")), read, written),
        completion=tokens(usage.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        cache_write_1h=_detail(usage.get("cache_creation"), "ephemeral_1h_input_tokens"),
        reasoning=_detail(usage.get("output_tokens_details"), "thinking_tokens"),
    )


def _usage(total: Any = None, /, **counts: int | None) -> Usage | None:
    """Return the usage, or None if a count is none, or if a server counts more than it explains: it bills that too."""
    known = {name: count for name, count in counts.items() if count is not None}
    if len(known) < len(counts):
        return None
    usage, in_total = Usage(**known), tokens(total) or 0
    if usage.reasoning and in_total == usage.prompt + usage.completion + usage.reasoning:  # xAI: on top of the answer
        return msgspec.structs.replace(usage, completion=usage.completion + usage.reasoning)
    return usage if in_total <= usage.prompt + usage.completion else None


def _sum(*counts: int | None) -> int | None:
    return None if None in counts else sum(count for count in counts if count is not None)


def refusal_text(details: Any) -> str:
    """Return the provider's explanation of a refusal that has no text."""
    refusal = _mapping(details)
    return ": ".join(
        part for part in (text_or_none(refusal.get("category")), text_or_none(refusal.get("explanation"))) if part
    )


def calls_trace(calls: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the stored form of tool calls, (name, arguments) each, that were requested but not made."""
    return Trace(tool_calls=tuple(ToolCall(tool=str(name), arguments=arguments) for name, arguments in calls)).as_dict()


def _detail(details: Any, name: str) -> int | None:
    """Return a count that may be missing, which means 0; None if there is something else in its place."""
    value = details.get(name) if isinstance(details, dict) else None
    return 0 if value is None else tokens(value)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
