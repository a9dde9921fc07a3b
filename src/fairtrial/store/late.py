"""Answers and verdicts that were paid for by a session that had lost its run: kept with it, never scored."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from sqlalchemy import func, select

from fairtrial.core.money import Cost
from fairtrial.core.variables import display
from fairtrial.store import schema
from fairtrial.store.rows import read_cost
from fairtrial.store.store import Store

_TEXTS = ("answer", "reply", "failure_message")  # what was said, by the columns of every kind of row
_KINDS = {"trials": "answer", "turns": "turn", "judgements": "verdict", "pairs": "comparison"}


class LateAnswer(NamedTuple):
    """One of them: what it is, where it would have been stored, its text, and what it cost."""

    what: str  # answer, turn, verdict or comparison
    case_position: int
    arms: tuple[int, ...]  # one, or those that were compared
    repeat: int
    text: str
    failed: bool
    cost: Cost
    kept_at: float
    epoch: int  # of the session that had lost the run
    row: dict[str, Any]  # as it would have been stored


def late_answers(store: Store, run_id: str) -> list[LateAnswer]:
    """Return what came too late for a run, in the order in which it came."""
    table = schema.late
    query = select(table).where(table.c.run_id == run_id).order_by(table.c.epoch, table.c.number)
    return [_read(row) for row in store.fetch_rows(table, query)]


def late_total(store: Store, run_id: str) -> tuple[int, Cost]:
    """Return how many there are, and what they cost."""
    table = schema.late
    sums = [func.sum(table.c[name]).label(name) for name in schema.COSTS]
    (row,) = store.fetch_dicts(select(func.count().label("count"), *sums).where(table.c.run_id == run_id))
    return row["count"], read_cost(row)


def _read(row: dict[str, Any]) -> LateAnswer:
    body = {name: _readable(value) for name, value in msgspec.msgpack.decode(row["body"]).items()}
    return LateAnswer(
        what=_KINDS.get(row["kind"], row["kind"]),
        case_position=row["case_position"],
        arms=tuple(body[name] for name in ("arm_position", "arm_one", "arm_other") if body.get(name) is not None),
        repeat=row["repeat"],
        text=next((display(body[name]) for name in _TEXTS if body.get(name)), ""),
        failed=body.get("failure_kind") is not None,
        cost=read_cost(row),
        kept_at=row["kept_at"],
        epoch=row["epoch"],
        row=body,
    )


def _readable(value: Any) -> Any:
    """Return a column's value; JSON decoded."""
    return msgspec.json.decode(value) if isinstance(value, bytes) else value
