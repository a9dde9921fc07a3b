"""The most that one call can use, from what is sent: a budget reserves it, an estimate promises it, and what a server
counts beyond it cannot be true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from fairtrial.core.answer import FILTERED, Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Target
from fairtrial.providers.prices import FREE, Price
from fairtrial.providers.sheet import sheet_of

_MOST_TOKENS = 10**12  # more than any call can use
_LONGEST_REPLY = 10**7  # tokens, where a request sets no limit; the longest context there is
_LONGEST_OF_FILTER = 5000  # characters that a filter says in the place of a model
_TOKENS_OF_IMAGE = 5000  # more than any provider counts for a screenshot
_TOKENS_OF_SCHEMA = 1000  # overhead that a provider adds for a requested JSON schema, or for tools
_TOKENS_AROUND = 64  # maximum overhead of a chat template, for each message
_MAYBE_BILLED = frozenset({"stream", "timeout", "malformed", "crashed"})
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Most(NamedTuple):
    """The most tokens of one call; `completion` is None if nothing limits the reply."""

    prompt: int
    completion: int | None


def most_tokens(spec: TargetSpec, request: Request, sent: Mapping[str, Any]) -> Most:
    """Return the most tokens that a single call can use; `sent` are the parameters that go out with it."""
    # No tokenizer produces more tokens than the text has bytes.
    prompt = len(request.system.encode()) + len(request.input.encode()) + _TOKENS_AROUND
    for message in request.history:
        prompt += len(message.content.encode()) + _TOKENS_AROUND
    for file in request.files:  # pages of a PDF are read as text and as images; its bytes are more than both
        prompt += _TOKENS_OF_IMAGE if file.is_image else max(_TOKENS_OF_IMAGE, len(file.body))
    if request.schema is not None:
        prompt += len(msgspec.json.encode(request.schema)) + _TOKENS_OF_SCHEMA
    if extra := sent.get("extra"):
        prompt += len(msgspec.json.encode(extra)) + (_TOKENS_OF_SCHEMA if "tools" in extra else 0)
    return Most(prompt + _preamble(spec), longest_reply(sent))


def most_in_body(spec: TargetSpec, request: Request, body: bytes, sent: Mapping[str, Any]) -> Most:
    """Return the most tokens of a call in the middle of a conversation with tools, whose whole body is known."""
    around = _TOKENS_AROUND + _TOKENS_OF_SCHEMA + _TOKENS_OF_IMAGE * len(request.files) + _preamble(spec)
    return Most(len(body) + around, longest_reply(sent))


def _preamble(spec: TargetSpec) -> int:
    """Return the most tokens that a model's provider or template puts before every prompt."""
    return sheet_of(spec.provider, spec.model_behind).preamble


def longest_reply(sent: Mapping[str, Any]) -> int | None:
    """Return the maximum completion tokens that a request allows, including `extra`, or None without a limit."""
    extra = sent.get("extra")
    if not extra:
        limit = sent.get("max_tokens")
        return limit if isinstance(limit, int) else None
    limits = [value for value in (sent.get("max_tokens"), *map(extra.get, _LIMITS)) if isinstance(value, int)]
    replies = extra.get("n") if isinstance(extra.get("n"), int) else 1
    return max(limits) * max(1, replies or 1) if limits else None


def is_bounded(target: Target | type[Target]) -> bool:
    """Return whether what is sent limits what a trial can cost: not if it makes calls of its own."""
    return not (target.many_calls or target.names_its_cost)


def most_usd(price: Price, most: Most, unlimited: int | None = None) -> float | None:
    """Return the maximum cost of a call, or None if there is none; `unlimited` replies count as this many tokens."""
    if price is FREE:
        return 0.0
    completion = unlimited if most.completion is None else most.completion
    return None if completion is None else price.most(most.prompt, completion)


def maybe_billed(failure: Failure) -> bool:
    """Return whether a failed call may have been processed and billed all the same."""
    return failure.maybe_billed or failure.kind in _MAYBE_BILLED


def believed(result: Answer | Failure, most: Most | None, *, embeds: bool = False) -> Answer | Failure:
    """Return a result without token counts that cannot be true: they are unknown, and so is the cost."""
    usage = result.usage
    if usage is None or _is_untouched(result):
        return result
    if isinstance(result, Failure):
        return result if can_be_true(usage, most) else replace(result, usage=None, maybe_billed=True)
    wrote = not embeds and bool(result.text.strip() or result.reasoning)
    return result if can_be_true(usage, most, wrote=wrote) else replace(result, usage=None)


def _is_untouched(result: Answer | Failure) -> bool:
    """Return whether the model did nothing: the call failed before, or a filter answered in its place."""
    if result.usage != Usage():
        return False
    if isinstance(result, Failure) or result.limit is not None:
        return True
    return result.finish_reason == FILTERED and not result.reasoning and len(result.text) <= _LONGEST_OF_FILTER


def can_be_true(usage: Usage, most: Most | None = None, *, wrote: bool = False) -> bool:
    """Return whether a server's token counts can be true of a request that was answered.

    `most` is what a single call can use, `wrote` whether the model wrote anything.
    """
    counts = msgspec.structs.astuple(usage)
    if not all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts):
        return False
    if usage.cache_read + usage.cache_write > usage.prompt or usage.cache_write_1h > usage.cache_write:
        return False
    if usage.reasoning > usage.completion or not usage.prompt or (wrote and not usage.completion):
        return False
    if most is None:
        return True
    longest = _LONGEST_REPLY if most.completion is None else most.completion
    return usage.prompt <= most.prompt and usage.completion <= longest
