"""What a provider says about its rate limits, in the headers of every reply.

Each vendor has its own names; a limit that makes no sense (Azure sends -1 for unknown ones) is treated as not told.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime

import msgspec

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class RateLimit(msgspec.Struct, frozen=True):
    """One limit: how much there is altogether, what is left of it, and after how many seconds it is whole again."""

    limit: float
    left: float
    reset: float | None = None  # None if it is not told


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may use at the moment; None for limits that the provider does not tell."""

    requests: RateLimit | None = None
    tokens: RateLimit | None = None  # of prompt and answer together
    input: RateLimit | None = None
    output: RateLimit | None = None
    reserves: bool = False  # whether `max_tokens` counts as used before there is an answer
    at: float = 0.0  # when it was told, by the clock of the event loop


def read_quota(headers: Mapping[str, str], at: float = 0.0) -> Quota | None:
    """Read the limits in the headers of a reply; None if there are none."""
    if "x-ratelimit-limit-tokens" in headers or "x-ratelimit-limit-requests" in headers:
        names = "x-ratelimit-limit-{}", "x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"
        return Quota(
            requests=_allowance(headers, "requests", names),
            tokens=_allowance(headers, "tokens", names),
            reserves=True,
            at=at,
        )
    if "anthropic-ratelimit-requests-limit" in headers or "anthropic-ratelimit-input-tokens-limit" in headers:
        parts = ("limit", "remaining", "reset")
        names = tuple(f"anthropic-ratelimit-{{}}-{part}" for part in parts)  # type: ignore[assignment]
        return Quota(
            requests=_allowance(headers, "requests", names),
            input=_allowance(headers, "input-tokens", names),
            output=_allowance(headers, "output-tokens", names),
            at=at,
        )
    if "x-ratelimit-limit-req-minute" in headers or "x-ratelimit-limit-tokens-minute" in headers:
        names = "x-ratelimit-limit-{}-minute", "x-ratelimit-remaining-{}-minute", ""
        return Quota(requests=_allowance(headers, "req", names), tokens=_allowance(headers, "tokens", names), at=at)
    return None


def _allowance(headers: Mapping[str, str], what: str, names: tuple[str, str, str]) -> RateLimit | None:
    limit, left = (_number(headers.get(name.format(what))) for name in names[:2])
    if limit is None or left is None or limit <= 0 or left < 0:
        return None
    reset = _seconds_until(headers.get(names[2].format(what), "")) if names[2] else None
    return RateLimit(limit, min(left, limit), reset)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _seconds_until(text: str) -> float | None:
    """Read `6s`, `1m30s`, `12ms`, plain seconds, or a time of RFC 3339."""
    if (seconds := _number(text)) is not None:
        return max(0.0, seconds)
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - time.time())
    except ValueError:
        return None
