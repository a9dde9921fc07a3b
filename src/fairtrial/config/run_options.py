"""What a run changes about its suite: which part of it is asked, and how."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from fairtrial.core.amounts import MOST_REPEATS, check_amount
from fairtrial.core.errors import FairtrialError
from fairtrial.core.looks import MOST_LOOKS


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Selections and overrides for a run; None keeps the suite's setting."""

    cases: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    limit: int | None = None  # this many cases, drawn at random
    first: int | None = None  # this many cases, from the start
    repeats: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    budget_usd: float | None = None
    benchmark_mode: bool | None = None
    cache: bool | None = None
    stream: bool | None = None
    stop_when: Literal["decided", "equivalent"] | None = None
    margin: float | None = None  # 0–1
    looks: int | None = None  # planned ones; 0: none, although the suite plans some
    race: bool | None = None
    gap: float | None = None  # 0–1

    def __post_init__(self) -> None:
        check_amount("budget_usd", self.budget_usd)
        for name in ("timeout", "margin", "gap", "concurrency", "repeats", "limit", "first"):
            check_amount(name, getattr(self, name), positive=True)
        if self.looks is not None and not 0 <= self.looks <= MOST_LOOKS:
            raise FairtrialError(f"there can be up to {MOST_LOOKS} looks, not {self.looks}")
        if self.repeats is not None and self.repeats > MOST_REPEATS:
            raise FairtrialError(f"repeats must be at most {MOST_REPEATS:,}, not {self.repeats:,}")
        if self.limit is not None and self.first is not None:
            raise FairtrialError(
                "limit and first cannot be combined: limit draws cases at random, first takes them from the start"
            )

    def selected(self) -> dict[str, Any]:
        """Return the options that decide which cases there are."""
        chosen = {name: getattr(self, name) for name in ("cases", "limit", "first", "repeats")}
        return {name: value for name, value in chosen.items() if value}
