"""Plans and runs as they are stored."""

from __future__ import annotations

from typing import Any

import msgspec

RANDOM = "random"  # the order in which a run asks its cases


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored plan: the cases and arms to run."""

    id: str
    suite_name: str
    suite_text: str
    suite_sha256: str
    dataset_sha256: str
    folder: str
    arms: bytes
    case_count: int
    created_at: float
    unfinished: bool = False  # its cases are still being written: `case_count` are written so far


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored run: when and how a plan was executed."""

    id: str
    plan_id: str
    series_id: str | None
    status: str
    reason: str | None
    settings: bytes
    context: bytes
    scoring: int
    created_at: float
    ended_at: float | None
    number: int
    suite_name: str
    epoch: int = 0

    @property
    def origin(self) -> dict[str, Any] | None:
        """Where the run was imported from; None if it was made here."""
        origin: dict[str, Any] | None = msgspec.json.decode(self.context).get("imported")
        return origin

    @property
    def order_key(self) -> str | None:
        """What the random order of its cases is drawn from; None if they are in the suite's order.

        Before runs recorded their order, only those that could stop early had a random one, drawn from their own id.
        """
        if msgspec.json.decode(self.context).get("order") == RANDOM:
            return self.plan_id
        return self.id if msgspec.json.decode(self.settings).get("stop") is not None else None

    @property
    def selected(self) -> dict[str, Any] | None:
        """Which cases of its suite were selected, as options of a run; None if that was not recorded."""
        selected: dict[str, Any] | None = msgspec.json.decode(self.context).get("selected")
        return selected
