"""Which cases a run has that stopped before it was complete, or that goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from fairtrial.store import Store, totals
from fairtrial.store.store import PlanRecord, RunRecord

if TYPE_CHECKING:
    from fairtrial.analyse.score_table import RunSource
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


def unfinished_notes(sources: Sequence[RunSource]) -> Iterator[str]:
    """Say of every run that lacks something which cases it has, or that it may change."""
    runs = [run for source in sources for run in source.runs]
    for run in runs:
        if run.status in ENDED:
            continue
        asked = asked_cases(run.store, run.record, run.plan)
        if asked is None:
            yield f"Run {run.id} is {run.status}: these results are not final."
        else:
            yield asked_words(asked, run.id if len(runs) > 1 else "")


def asked_words(asked: AskedCases, run: str = "") -> str:
    """Say why a run has some of its cases only, and whether they stand for the others; `run` names it among several.

    `Stopped by the budget of $5: 63 of 200 cases, drawn at random, so they stand for the rest.`
    """
    why = _why(asked)
    named = f"Run {run}, {why[:1].lower()}{why[1:]}" if run else why
    return f"{named}: {asked_brief(asked)}{_worth(asked)}."


def asked_brief(asked: AskedCases) -> str:
    """Return the same in few words, for a list: `63 of 200 cases, drawn at random`."""
    of = f"at least {asked.of:,}" if asked.more else f"{asked.of:,}"
    return f"{asked.cases:,} of {of} cases{_how(asked)}"


def by_budget(reason: str | None) -> bool:
    """Return whether a run stopped because its money was spent."""
    return (reason or "").startswith("budget of ")


def _why(asked: AskedCases) -> str:
    if asked.status == "running":
        return "Still running"
    if asked.status == "interrupted":
        return "Interrupted"
    if asked.reason and by_budget(asked.reason):
        return f"Stopped by the {asked.reason.partition(' reached')[0]}"
    return "Incomplete"


def _how(asked: AskedCases) -> str:
    if not asked.cases:
        return ""
    return {None: ", chosen by another tool", True: ", drawn at random", False: ", the first of the suite"}[asked.drawn]


def _worth(asked: AskedCases) -> str:
    if not asked.cases:
        return ""
    return ", so they stand for the rest" if asked.drawn else ": they may not be like the rest"
