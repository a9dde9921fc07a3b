"""How many cases of a plan are stored, and how many trials they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, select

from fairtrial.core.experiment import Arm
from fairtrial.store import schema
from fairtrial.store.rows import decode

Asked = tuple[bytes | None, bytes | None]  # the targets and conditions that cases are for, as JSON; None: all


class PlannedCases(NamedTuple):
    """Cases that are for the same targets and conditions."""

    cases: int = 0
    own: int = 0  # cases that set their own number of repeats
    repeats: int = 0  # of those cases, in total

    def trials(self, arm: Arm) -> int:
        """Return how many trials of an arm that is asked them they make."""
        return (self.cases - self.own) * arm.repeats + self.repeats

    def with_case(self, repeats: int | None) -> PlannedCases:
        """Return them with another case, which may set its own number of repeats."""
        return PlannedCases(self.cases + 1, self.own + (repeats is not None), self.repeats + (repeats or 0))


class Planned(NamedTuple):
    """The cases of a plan that are stored."""

    cases: int = 0
    own: int = 0  # cases for all arms that set their own number of repeats
    repeats: int = 0  # of those cases, in total
    limited: Mapping[Asked, PlannedCases] = {}  # cases that are for some targets or conditions only

    def trials(self, arm: Arm) -> int:
        """Return how many trials of an arm they make."""
        for_all = PlannedCases(self.cases - sum(group.cases for group in self.limited.values()), self.own, self.repeats)
        return for_all.trials(arm) + sum(
            group.trials(arm)
            for (targets, conditions), group in self.limited.items()
            if arm.is_asked(decode(targets) or (), decode(conditions) or ())
        )

    def with_rows(self, rows: Sequence[Mapping[str, Any]]) -> Planned:
        """Return them with the rows of further cases."""
        cases, own, repeats, limited = self
        groups = dict(limited)
        for row in rows:
            asked = row["targets"], row["conditions"]
            if any(asked):
                groups[asked] = groups.get(asked, PlannedCases()).with_case(row["repeats"])
            elif row["repeats"] is not None:
                own, repeats = own + 1, repeats + row["repeats"]
        return Planned(cases + len(rows), own, repeats, groups)


def planned_cases(connection: Connection, plan_id: str) -> Planned:
    """Count the stored cases of a plan."""
    table = schema.cases
    own = table.c.repeats
    counts = select(func.count(), func.count(own), func.coalesce(func.sum(own), 0)).where(table.c.plan_id == plan_id)
    asked = table.c.targets, table.c.conditions
    *whole, by_target, by_condition = connection.execute(counts.add_columns(*map(func.count, asked))).one()
    if not by_target and not by_condition:  # as in most plans: sorting a million cases into groups takes a while
        return Planned(*whole)
    found = connection.execute(counts.add_columns(*asked).group_by(*asked))
    groups = {(targets, conditions): PlannedCases(*sums) for *sums, targets, conditions in found}
    _, own_of_all, repeats_of_all = groups.pop((None, None), PlannedCases())
    return Planned(whole[0], own_of_all, repeats_of_all, groups)


def count_by_position(connection: Connection, plan_id: str) -> int:
    """Return how many cases of a plan are stored, without counting them: they are written in order."""
    last = connection.scalar(select(func.max(schema.cases.c.position)).where(schema.cases.c.plan_id == plan_id))
    return 0 if last is None else int(last) + 1


def target_rows(plan_id: str, arms: bytes) -> list[dict[str, str]]:
    """Return the rows of `plan_targets` for a plan with these arms."""
    names = {arm["target"]["id"] for arm in msgspec.json.decode(arms)}
    return [{"plan_id": plan_id, "target": name} for name in sorted(names)]
