"""Arms without a score: what became of their trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairtrial.analyse.arm_scores import ArmScores
from fairtrial.analyse.comparison import Silent
from fairtrial.store import outcomes


def silent_arms(arms: Iterable[ArmScores], metric: str) -> list[Silent]:
    """Return the arms that have no value of a metric."""
    return [
        Silent(label=arm.label, ended=arm.ended, failures=_failures(arm) if arm.failures else {})
        for arm in arms
        if not arm.values.get(metric)
    ]


def _failures(arm: ArmScores) -> dict[str, int]:
    kinds: Counter[str] = Counter()
    for run, _, position in arm.origins:
        kinds.update(outcomes.failure_kinds(run.store, run.id, position))
    return dict(kinds.most_common())
