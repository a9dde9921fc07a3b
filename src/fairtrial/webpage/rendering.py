"""The result of opening a page in a browser, and the limits for it."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.webpage.checks import CheckResult

_GIBIBYTE = 2**30


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a page may use, in seconds and bytes."""

    busy: float = 8.0  # processor time before it must respond
    suspect: float = 3.0  # the same in virtual time; then it is tried in real time
    wall: float = 180.0  # for any step: far more than a page needs on a busy machine
    memory: int = _GIBIBYTE


class Rendering(msgspec.Struct, kw_only=True):
    """What a browser found. `trouble` says why results are missing: the page hung, crashed or used too much memory.

    `stalled` is not the page's fault: the browser did not respond for very long while the page was idle.
    """

    trouble: str = ""
    stalled: str = ""
    virtual: bool = False  # whether it ran in virtual time
    errors: list[str] = []
    console: list[str] = []
    blocked: list[str] = []
    desktop: dict[str, Any] | None = None
    phone: dict[str, Any] | None = None
    tablet_overflow: int | None = None
    controls: dict[str, Any] | None = None
    checks: list[CheckResult] = []
    pictures: dict[str, bytes] = {}
