"""Blind votes of people on pairs of answers, and what the judges said about the same pairs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import and_, delete, func, select

from fairtrial.core.ids import new_id
from fairtrial.store import schema
from fairtrial.store.records import RunRecord
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
    for row in store.fetch_rows(table, query):
        yield {**row, "worth": WORTH[row["choice"]]}


def vote_of_id(store: Store, run_id: str, name: str) -> dict[str, Any] | None:
    """Return a vote on a run's answers by its id."""
    table = schema.votes
    query = select(table).where(table.c.run_id == run_id, table.c.id == name)
    return next(iter(store.fetch_rows(table, query)), None)


def forget_vote(store: Store, run_id: str, name: str, voter: str) -> bool:
    """Delete a vote of this voter; return whether there was one."""
    table = schema.votes
    mine = (table.c.run_id == run_id, table.c.id == name, table.c.voter == voter)
    with store.writing() as connection:
        return connection.execute(delete(table).where(*mine)).rowcount > 0


class VotedRun(NamedTuple):
    """A run that people have voted on."""

    run_id: str
    suite_name: str
    votes: int
    voted_at: float


def voted_runs(store: Store) -> list[VotedRun]:
    """Return every run with votes, the one with the newest vote first."""
    table, runs, plans = schema.votes, schema.runs, schema.plans
    newest = func.max(table.c.voted_at)
    query = (
        select(table.c.run_id, plans.c.suite_name, func.count(), newest)
        .join(runs, runs.c.id == table.c.run_id)
        .join(plans, plans.c.id == runs.c.plan_id)
        .group_by(table.c.run_id, plans.c.suite_name)
        .order_by(newest.desc())
    )
    return [VotedRun(*row) for row in store.fetch(query)]


def judged_votes(store: Store, run: RunRecord, name: str | None = None) -> dict[str, float]:
    """Return by vote, or of one vote, how judges value `one` against `other` on the same pair: 1, 0 or between.

    Judges who compared the two answers come first; where none did, the answer with the higher score is preferred.
    Votes on answers without scores are left out.
    """
    table, scores = schema.votes, schema.scores
    one, other = scores.alias("one"), scores.alias("other")
    wanted = [table.c.run_id == run.id, *([table.c.id == name] if name else [])]

    def score_of(side: Any, arm: Any) -> Any:
        same = (side.c[column] == table.c[column] for column in ("run_id", "case_position", "repeat"))
        return and_(*same, side.c.arm_position == arm, side.c.scoring == run.scoring)

    by_score = (
        select(table.c.id, one.c.value, other.c.value)
        .join(one, score_of(one, table.c.arm_one))
        .join(other, score_of(other, table.c.arm_other))
        .where(*wanted, one.c.value.is_not(None), other.c.value.is_not(None))
    )
    pairs = schema.pairs
    same_pair = (pairs.c[column] == table.c[column] for column in ("run_id", "case_position", "repeat"))
    arms = (pairs.c.arm_one == table.c.arm_one, pairs.c.arm_other == table.c.arm_other)
    by_pair = (
        select(table.c.id, pairs.c.forward, pairs.c.backward)
        .join(pairs, and_(*same_pair, *arms))
        .where(*wanted, pairs.c.failure_kind.is_(None))
    )
    found = {vote: 0.5 if one == other else float(one > other) for vote, one, other in store.fetch(by_score)}
    compared: dict[str, list[float]] = {}
    for vote, forward, backward in store.fetch(by_pair):
        compared.setdefault(vote, []).append(forward if forward == backward else 0.5)
    return found | {vote: sum(values) / len(values) for vote, values in compared.items()}


def has_pairs(store: Store, run_id: str) -> bool:
    """Return whether judges have compared answers of a run in pairs."""
    table = schema.pairs
    query = select(table.c.run_id).where(table.c.run_id == run_id, table.c.failure_kind.is_(None)).limit(1)
    return store.fetch_value(query) is not None


def answered_arms(store: Store, run_id: str, case: int | None = None) -> dict[tuple[int, int], list[int]]:
    """Return the arms that have answered by case and repeat, for one case or for all."""
    table = schema.trials
    query = select(table.c.case_position, table.c.repeat, table.c.arm_position).where(
        table.c.run_id == run_id, table.c.failure_kind.is_(None)
    )
    if case is not None:
        query = query.where(table.c.case_position == case)
    arms: dict[tuple[int, int], list[int]] = {}
    query = query.order_by(*schema.place(table))
    for position, repeat, arm in store.fetch(query):
        arms.setdefault((position, repeat), []).append(arm)
    return arms


def pair_count(store: Store, run_id: str) -> int:
    """Return the number of pairs of answers to the same case."""
    table = schema.trials
    conditions = (table.c.run_id == run_id, table.c.failure_kind.is_(None))
    counts = select(func.count().label("arms")).where(*conditions).group_by(table.c.case_position, table.c.repeat)
    sizes = counts.subquery()
    return (store.fetch_value(select(func.sum(sizes.c.arms * (sizes.c.arms - 1)))) or 0) // 2
