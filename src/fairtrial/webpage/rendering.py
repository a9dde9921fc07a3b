"""What a browser showed of a page, and within which limits."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.webpage.checks import CheckResult

_GIBIBYTE = 2**30


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a page may take, in seconds and bytes."""

    busy: float = 8.0  # of processor time before it answers
    suspect: float = 3.0  # the same in virtual time; then it is looked at in real time
    wall: float = 180.0  # for anything: far more than a page needs on a busy machine
    memory: int = _GIBIBYTE


class Rendering(msgspec.Struct, kw_only=True):
    """What a browser showed. `trouble` says why something is missing: the page hung, crashed or ate the memory.

    `stalled` is no fault of the page: the browser said nothing for very long, and the page did nothing meanwhile.
    """

    trouble: str = ""
    stalled: str = ""
    virtual: bool = False  # whether it lived in virtual time
    errors: list[str] = []
    console: list[str] = []
    blocked: list[str] = []
    desktop: dict[str, Any] | None = None
    phone: dict[str, Any] | None = None
    tablet_overflow: int | None = None
    controls: dict[str, Any] | None = None
    checks: list[CheckResult] = []
    pictures: dict[str, bytes] = {}
