"""Search the trials of a run: filtered and sorted in SQL, without reading their texts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, or_, select

from fairtrial.core.place import Place
from fairtrial.store import schema
from fairtrial.store.case_kinds import tagged_cases
from fairtrial.store.records import RunRecord
from fairtrial.store.store import Store


class TrialQuery(NamedTuple):
    """A filter for trials; an empty field matches every trial, several values of a field match any of them."""

    arms: tuple[int, ...] = ()  # positions
    cases: tuple[str, ...] = ()  # ids
    category: tuple[str, ...] = ()
    difficulty: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    below: float | None = None  # scores 0–1, without this one
    above: float | None = None
    failed: bool = False  # calls that failed; together with `unscored`, both
    unscored: bool = False  # answers without a score
    worst_first: bool = False


class Places(Sequence[Place]):
    """The places of many trials in little memory."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def add(self, case: int, arm: int, repeat: int) -> None:
        """Add a place at the end."""
        self._numbers.extend((case, arm, repeat))

    def __len__(self) -> int:
        return len(self._numbers) // 3

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        first = 3 * (number % len(self))
        return Place(*self._numbers[first : first + 3])

    def __iter__(self) -> Iterator[Place]:
        return (self[number] for number in range(len(self)))


def matching_trials(store: Store, run: RunRecord, query: TrialQuery) -> Places:
    """Return the places of the matching trials: by case, arm and repeat, or the lowest scores first."""
    tagged = tagged_cases(store, run.plan_id, query.tag) if query.tag else None
    places = Places()
    with store.reading() as connection:
        for row in connection.execute(_statement(run, query).execution_options(yield_per=2000)):
            if tagged is None or row[0] in tagged:
                places.add(*row)
    return places


def _statement(run: RunRecord, query: TrialQuery) -> Select[Any]:
    trials, scores, cases = schema.trials, schema.scores, schema.cases
    place = schema.place(trials)
    statement = (
        select(*place)
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == run.scoring))
        .where(trials.c.run_id == run.id)
        .order_by(*([scores.c.value.nulls_first()] if query.worst_first else []), *place)
    )
    if query.arms:
        statement = statement.where(trials.c.arm_position.in_(query.arms))
    chosen = {"id": query.cases, "category": query.category, "difficulty": query.difficulty}
    if any(chosen.values()):
        here = and_(cases.c.plan_id == run.plan_id, cases.c.position == trials.c.case_position)
        statement = statement.join(cases, here)
        statement = statement.where(*(cases.c[name].in_(values) for name, values in chosen.items() if values))
    if query.below is not None:
        statement = statement.where(scores.c.value < query.below)
    if query.above is not None:
        statement = statement.where(scores.c.value > query.above)
    if query.failed or query.unscored:
        failed = trials.c.failure_kind.is_not(None)
        unscored = and_(trials.c.failure_kind.is_(None), scores.c.value.is_(None))
        statement = statement.where(or_(*[failed] * query.failed, *[unscored] * query.unscored))
    return statement
