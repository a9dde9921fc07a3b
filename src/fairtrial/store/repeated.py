"""How many cases of a plan repeat the question of another one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select

from fairtrial.core.experiment import Arm
from fairtrial.core.questions import Questions
from fairtrial.store import schema
from fairtrial.store.records import PlanRecord
from fairtrial.store.store import Store

_AT_ONCE = 10_000


def repeated_questions(store: Store, plan: PlanRecord, arms: Sequence[Arm]) -> int:
    """Return how many cases without a cluster ask what another one asks, word for word."""
    table = schema.cases
    inputs = select(func.count(), func.count(table.c.input.distinct()))
    ((cases, different),) = store.fetch(inputs.where(table.c.plan_id == plan.id, table.c.cluster.is_(None)))
    if cases == different:  # as nearly always: then no case need be read
        return 0
    questions = Questions(arms)
    known = 0
    seen: set[int] = set()
    for first in range(0, plan.case_count, _AT_ONCE):
        keys = [key for case in store.cases(plan.id, first, _AT_ONCE) if (key := questions.key(case)) is not None]
        known += len(keys)
        seen.update(map(hash, keys))
    return known - len(seen)
