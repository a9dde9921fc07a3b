"""Types that threads may meet at once: msgspec looks into a type when it first meets it, and crashes if two do so."""

from __future__ import annotations

from typing import Any

import msgspec


def look_into(*kinds: Any) -> None:
    """Let msgspec look into these types, and all that are in them, now: while a module is imported by one thread."""
    for kind in kinds:
        msgspec.json.Decoder(kind)
