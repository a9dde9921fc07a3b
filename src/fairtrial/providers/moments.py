"""Moments that a server names, in seconds from its reply on: by the server's own clock, for ours may be wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping


def seconds_until(moment: float, headers: Mapping[str, str]) -> float:
    """Return how long it is from a reply with these headers until a moment, in seconds since 1970; 0 if it is over."""
    return max(0.0, moment - now_there(headers))


def now_there(headers: Mapping[str, str]) -> float:
    """Return when a reply with these headers was sent by the server's clock; by ours if it does not say."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(headers.get("Date") or headers.get("date") or "").timestamp()
    except (ValueError, OverflowError):
        return time.time()
