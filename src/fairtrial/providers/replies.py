"""Read the metadata of replies leniently: a good answer is never discarded because its metadata is malformed.

An impossible count (negative, or too large to be exact as a number) is treated as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    usage = _mapping(reply)
    prompt, completion = tokens(usage.get("prompt_tokens")), tokens(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    return usage_with_details(
        prompt, completion, usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    )


def responses_usage(reply: Any) -> Usage | None:
    """Return the usage of a response; cached and reasoning tokens are included in the other counts."""
    usage = _mapping(reply)
    prompt, completion = tokens(usage.get("input_tokens")), tokens(usage.get("output_tokens"))
    if prompt is None or completion is None:
        return None
    return usage_with_details(prompt, completion, usage.get("input_tokens_details"), usage.get("output_tokens_details"))


def usage_with_details(prompt: int, completion: int, read: Any, written: Any) -> Usage:
    """Return the usage of an OpenAI reply; details that cannot be are left out."""
    cached, cache_write = _detail(read, "cached_tokens"), _detail(read, "cache_write_tokens")
    if cached + cache_write > prompt:
        cached = cache_write = 0
    reasoning_tokens = _detail(written, "reasoning_tokens")
    return Usage(
        prompt=prompt,
        completion=completion,
        cache_read=cached,
        cache_write=cache_write,
        reasoning=reasoning_tokens if reasoning_tokens <= completion else 0,
    )


def google_usage(reply: Any) -> Usage | None:
    """Return the usage of Gemini; cached tokens are part of the prompt, thoughts come on top of the answer."""
    usage = _mapping(reply)
    prompt, answer = tokens(usage.get("promptTokenCount")), tokens(usage.get("candidatesTokenCount") or 0)
    thoughts, cached = tokens(usage.get("thoughtsTokenCount") or 0), tokens(usage.get("cachedContentTokenCount") or 0)
    tools = tokens(usage.get("toolUsePromptTokenCount") or 0)
    if prompt is None or answer is None or thoughts is None or tools is None:
        return None
    return Usage(
        prompt=prompt + tools,
        completion=answer + thoughts,
        cache_read=cached if cached is not None and cached <= prompt else 0,
        reasoning=thoughts,
    )


def bedrock_usage(reply: Any) -> Usage | None:
    """Return the usage of Converse; tokens read from and written to the cache come on top of `inputTokens`."""
    usage = _mapping(reply)
    fresh, completion = tokens(usage.get("inputTokens")), tokens(usage.get("outputTokens"))
    read, written = tokens(usage.get("cacheReadInputTokens") or 0), tokens(usage.get("cacheWriteInputTokens") or 0)
    if fresh is None or completion is None or read is None or written is None:
        return None
    return Usage(prompt=fresh + read + written, completion=completion, cache_read=read, cache_write=written)


def openai_cost(reply: Any) -> float | None:
    """Return the cost that a router reports."""
    cost = _mapping(reply).get("cost")
    return float(cost) if _is_number(cost) and 0 <= cost <= _MAX_EXACT else None


def anthropic_usage(reply: Any) -> Usage | None:
    """Return the usage of a message; tokens read from and written to the cache come on top of `input_tokens`."""
    usage = _mapping(reply)
    fresh, completion = tokens(usage.get("input_tokens")), tokens(usage.get("output_tokens"))
    read = tokens(usage.get("cache_read_input_tokens") or 0)
    written = tokens(usage.get("cache_creation_input_tokens") or 0)
    if fresh is None or completion is None or read is None or written is None:
        return None
    reasoning_tokens = _detail(usage.get("output_tokens_details"), "thinking_tokens")
    return Usage(
        prompt=fresh + read + written,
        completion=completion,
        cache_read=read,
        cache_write=written,
        cache_write_1h=min(_detail(usage.get("cache_creation"), "ephemeral_1h_input_tokens"), written),
        reasoning=reasoning_tokens if reasoning_tokens <= completion else 0,
    )


def refusal_text(details: Any) -> str:
    """Return the provider's explanation of a refusal that has no text."""
    refusal = _mapping(details)
    return ": ".join(
        part for part in (text_or_none(refusal.get("category")), text_or_none(refusal.get("explanation"))) if part
    )


def calls_trace(calls: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return the stored form of tool calls, (name, arguments) each, that were requested but not made."""
    return Trace(tool_calls=tuple(ToolCall(tool=str(name), arguments=arguments) for name, arguments in calls)).as_dict()


def _detail(details: Any, name: str) -> int:
    return (tokens(details.get(name)) or 0) if isinstance(details, dict) else 0


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
