"""The facts about a run that are shown below its headline, on the page and in the report."""

from __future__ import annotations

from typing import NamedTuple

from fairtrial.analyse.run import Run
from fairtrial.analyse.summary import RunSummary
from fairtrial.core.money import Cost
from fairtrial.store.opinions import judges_asked


class RunFacts(NamedTuple):
    """How many cases, arms and answers, which judges, and what it cost."""

    cases: int
    arms: int
    trials: int
    scored: int
    failed: int
    unscored: int
    waiting: int
    judges: list[str]
    cost: Cost | None  # None where nothing was spent


def run_facts(run: Run, summary: RunSummary) -> RunFacts:
    """Return the facts about a run."""
    arms, cost = summary.arms, summary.spent
    return RunFacts(
        cases=summary.case_count,
        arms=len(arms),
        trials=sum(arm.trials for arm in arms),
        scored=sum(arm.scored for arm in arms),
        failed=sum(arm.failed for arm in arms),
        unscored=sum(arm.unscored for arm in arms),
        waiting=sum(arm.waiting for arm in arms),
        judges=[name for name, _, _ in judges_asked(run.store, run.id, run.record.scoring)] if summary.judging else [],
        cost=cost if cost.charged or cost.unknown else None,
    )
