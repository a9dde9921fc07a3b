"""Blind votes of people on pairs of answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from sqlalchemy import func, select

from fairtrial.core.ids import new_id
from fairtrial.store import schema
from fairtrial.store.store import Store

Choice = Literal["one", "other", "tie", "neither"]
# The value of `one`; `neither` means that both are bad.
WORTH: dict[str, float] = {"one": 1.0, "other": 0.0, "tie": 0.5, "neither": 0.5}


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """A choice between two arms' answers to one case."""

    case_position: int
    repeat: int
    arm_one: int
    arm_other: int
    choice: Choice
    left: int
    voter: str = "somebody"


def add_vote(store: Store, run_id: str, vote: Vote) -> str:
    """Store a vote and return its id."""
    row = {"id": new_id(), "run_id": run_id, **msgspec.structs.asdict(vote), "voted_at": time.time()}
    store.write({"votes": [row]})
    return str(row["id"])


def votes(store: Store, run_id: str) -> Iterator[dict[str, Any]]:
    """Yield every vote on a run's answers, oldest first."""
    table = schema.votes
    query = select(table).where(table.c.run_id == run_id).order_by(table.c.id)
    with store.reading() as connection:
        for row in connection.execute(query).mappings():
            yield {**row, "worth": WORTH[row["choice"]]}


def answered_arms(store: Store, run_id: str, case: int | None = None) -> dict[tuple[int, int], list[int]]:
    """Return the arms that have answered by case and repeat, for one case or for all."""
    table = schema.trials
    query = select(table.c.case_position, table.c.repeat, table.c.arm_position).where(
        table.c.run_id == run_id, table.c.failure_kind.is_(None)
    )
    if case is not None:
        query = query.where(table.c.case_position == case)
    arms: dict[tuple[int, int], list[int]] = {}
    with store.reading() as connection:
        for position, repeat, arm in connection.execute(query):
            arms.setdefault((position, repeat), []).append(arm)
    return arms


def pair_count(store: Store, run_id: str) -> int:
    """Return the number of pairs of answers to the same case."""
    table = schema.trials
    conditions = (table.c.run_id == run_id, table.c.failure_kind.is_(None))
    counts = select(func.count().label("arms")).where(*conditions).group_by(table.c.case_position, table.c.repeat)
    sizes = counts.subquery()
    query = select(func.sum(sizes.c.arms * (sizes.c.arms - 1)))
    with store.reading() as connection:
        return (connection.scalar(query) or 0) // 2
