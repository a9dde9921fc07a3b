"""What a provider says about its rate limits, in the headers of every reply.

Each vendor has its own names; a limit that makes no sense (Azure sends -1 for unknown ones) is treated as not told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from fairtrial.providers.moments import seconds_until

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# The names of the headers with a limit, what is left of it and when it is whole again, by the kind of limit.
_OPENAI = {
    kind: (f"x-ratelimit-limit-{kind}", f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}")
    for kind in ("requests", "tokens")
}
_ANTHROPIC = {
    kind: (
        f"anthropic-ratelimit-{name}-limit",
        f"anthropic-ratelimit-{name}-remaining",
        f"anthropic-ratelimit-{name}-reset",
    )
    for kind, name in (("requests", "requests"), ("input", "input-tokens"), ("output", "output-tokens"))
}
_MISTRAL = {
    kind: (f"x-ratelimit-limit-{name}-minute", f"x-ratelimit-remaining-{name}-minute", "")
    for kind, name in (("requests", "req"), ("tokens", "tokens"))
}
_BY_LIMIT = {names[0]: vendor for vendor in (_OPENAI, _ANTHROPIC, _MISTRAL) for names in vendor.values()}
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
    names = next((vendor for limit, vendor in _BY_LIMIT.items() if limit in headers), None)
    if names is None:
        return None
    limits = {kind: _rate_limit(headers, *of_kind) for kind, of_kind in names.items()}
    return Quota(**limits, reserves=names is _OPENAI, at=at)


def _rate_limit(headers: Mapping[str, str], whole: str, rest: str, end: str) -> RateLimit | None:
    limit, left = _number(headers.get(whole)), _number(headers.get(rest))
    if limit is None or left is None or limit <= 0 or left < 0:
        return None
    return RateLimit(limit, min(left, limit), _until_whole(headers[end], headers) if end in headers else None)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _until_whole(text: str, headers: Mapping[str, str]) -> float | None:
    """Read `6s`, `1m30s`, `12ms`, plain seconds, or a time of RFC 3339."""
    if (seconds := _number(text)) is not None:
        return max(0.0, seconds)
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
    try:
        return seconds_until(datetime.fromisoformat(text).timestamp(), headers)
    except ValueError:
        return None
