"""What a browser showed of a page, and within which limits."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.webpage.checks import CheckResult

_GIBIBYTE = 2**30


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a page may take and how much it may have; seconds and bytes."""

    load: float = 8.0
    measure: float = 6.0
    use: float = 14.0
    memory: int = _GIBIBYTE


class Rendering(msgspec.Struct, kw_only=True):
    """What a browser showed. `trouble` says why something is missing: the page hung, crashed or ate the memory."""

    trouble: str = ""
    errors: list[str] = []
    console: list[str] = []
    blocked: list[str] = []
    desktop: dict[str, Any] | None = None
    phone: dict[str, Any] | None = None
    tablet_overflow: int | None = None
    controls: dict[str, Any] | None = None
    checks: list[CheckResult] = []
    pictures: dict[str, bytes] = {}
