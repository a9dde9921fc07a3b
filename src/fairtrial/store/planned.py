"""How many cases of a plan are stored, and how many trials they make."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from fairtrial.core.experiment import Arm
from fairtrial.store import schema


class Planned(NamedTuple):
    """The cases of a plan that are stored."""

    cases: int = 0
    own: int = 0  # cases that set their own number of repeats
    repeats: int = 0  # of those cases, in total

    def trials(self, arm: Arm) -> int:
        """Return how many trials of an arm they make."""
        return (self.cases - self.own) * arm.repeats + self.repeats


def planned_cases(connection: Connection, plan_id: str) -> Planned:
    """Count the stored cases of a plan."""
    own = schema.cases.c.repeats
    counts = select(func.count(), func.count(own), func.coalesce(func.sum(own), 0))
    return Planned(*connection.execute(counts.where(schema.cases.c.plan_id == plan_id)).one())


def count_by_position(connection: Connection, plan_id: str) -> int:
    """Return how many cases of a plan are stored, without counting them: they are written in order."""
    last = connection.scalar(select(func.max(schema.cases.c.position)).where(schema.cases.c.plan_id == plan_id))
    return 0 if last is None else int(last) + 1
