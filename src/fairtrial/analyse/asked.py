"""Which cases a run has that stopped before it was complete, or that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairtrial.store import Store, totals
from fairtrial.store.records import PlanRecord, RunRecord

if TYPE_CHECKING:
    from fairtrial.analyse.stored_run import StoredRun

ENDED = ("completed", "stopped")  # statuses of runs that lack nothing


class AskedCases(msgspec.Struct, frozen=True, kw_only=True):
    """The cases that a run has asked so far."""

    cases: int
    of: int
    drawn: bool | None  # at random; otherwise they are the first of the suite; None: another tool chose them
    status: str
    reason: str | None = None
    more: bool = False  # the dataset has more cases than are counted: it was not read to its end


def asked_cases(store: Store, record: RunRecord, plan: PlanRecord) -> AskedCases | None:
    """Return which cases a run has; None if it has all of them, or all that it needed to be sure."""
    if record.status in ENDED:
        return None
    cases = totals.asked_cases(store, record.id)
    if cases == plan.case_count and not plan.unfinished:
        return None
    drawn = None if record.origin is not None else record.order_key is not None
    return AskedCases(
        cases=cases, of=plan.case_count, drawn=drawn, status=record.status, reason=record.reason, more=plan.unfinished
    )


def cases_key(run: StoredRun) -> tuple[object, ...]:
    """Return what only runs on the same cases of the same dataset have in common."""
    selected = run.record.selected or {}
    chosen = (repr(selected.get(name)) for name in ("cases", "limit", "first"))
    return (run.plan.dataset_sha256, run.plan.case_count, *chosen)


def by_budget(reason: str | None) -> bool:
    """Return whether a run stopped because its money was spent."""
    return (reason or "").startswith("budget of ")
