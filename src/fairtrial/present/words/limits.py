"""Words about agents that reached a limit: of a run, of an arm, of one trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fairtrial.core.answer import LIMITS, limit_words
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.stored_run import TrialRecord
    from fairtrial.analyse.summary import ArmSummary


def limit_counts(limits: Mapping[str, int]) -> str:
    """Return how many trials ended at which limit: `2 time, 1 turns`."""
    return ", ".join(f"{limits[kind]} {kind}" for kind in LIMITS if limits.get(kind))


def limit_note(arms: Iterable[ArmSummary]) -> str:
    """Say of how many trials of a run it is true: `3 of 40 trials ended at a limit (2 time, 1 turns).`"""
    limits: Counter[str] = Counter()
    ended = 0
    for arm in arms:
        limits.update(arm.limits)
        ended += arm.trials - arm.waiting
    if not limits:
        return ""
    return f"{limits.total()} of {counted(ended, 'trial')} ended at a limit ({limit_counts(limits)})."


def limit_lines(arm: ArmSummary) -> list[str]:
    """Say it of an arm, below its score."""
    if not arm.limits:
        return []
    of = counted(arm.trials - arm.waiting, "trial")
    return [f"ended at a limit: {sum(arm.limits.values())} of {of} ({limit_counts(arm.limits)})"]


def trial_limit(trial: TrialRecord) -> str:
    """Say at which limit a trial ended, and what it was doing then, if that is known; empty if at none."""
    if trial.limit is None:
        return ""
    return "; ".join(filter(None, [limit_words(trial.limit, trial.limit_value), _doing(trial.trace)]))


def _doing(trace: dict[str, Any] | None) -> str:
    """Return the note that comes just before the limit in the events of a trial."""
    for before, event in pairwise((trace or {}).get("events") or ()):
        if event.get("type") == "limit" and before.get("type") == "note":
            return str(before.get("text") or "")
    return ""
