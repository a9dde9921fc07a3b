"""What trials said and did before their last answers: turns of conversations, and traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select

from fairtrial.core.place import Place, place_of
from fairtrial.core.trace import whole_trace
from fairtrial.store import schema
from fairtrial.store.rows import decode
from fairtrial.store.store import Store

_BATCH = 200


def turn_rows(store: Store, run_id: str, cases: Sequence[int], place: Place | None = None) -> list[dict[str, Any]]:
    """Return the stored turns of all trials of these cases, or of one trial, each conversation in order."""
    table = schema.turns
    query = (
        select(table)
        .where(table.c.run_id == run_id, table.c.case_position.in_(cases))
        .order_by(*schema.place(table), table.c.number)
    )
    if place is not None:
        query = query.where(*schema.at(table, place))
    return store.fetch_rows(table, query)


class TraceRow(NamedTuple):
    """What a trial did; failed ones have a trace too, as far as they came."""

    case_position: int
    arm_position: int
    trace: dict[str, Any] | None
    failed: bool = False


def trace_rows(store: Store, run_id: str, first: int, count: int) -> Iterator[TraceRow]:
    """Stream the traces of the trials of a range of cases, in their order; trials that did nothing have none."""
    earlier = _turn_traces(store, run_id, first, count)
    table = schema.trials
    query = (
        select(table.c.case_position, table.c.arm_position, table.c.repeat, table.c.trace, table.c.failure_kind)
        .where(table.c.run_id == run_id, table.c.case_position >= first, table.c.case_position < first + count)
        .order_by(*schema.place(table))
        .execution_options(yield_per=_BATCH)
    )
    with store.reading() as connection:
        for case, arm, repeat, trace, failure in connection.execute(query):
            whole = whole_trace(decode(trace), earlier.get(Place(case, arm, repeat), ()))
            yield TraceRow(case, arm, whole, failed=failure is not None)


def _turn_traces(store: Store, run_id: str, first: int, count: int) -> dict[Place, list[dict[str, Any] | None]]:
    """Return the traces of earlier turns: those of conversations that failed, and of runs that are older than lists."""
    table = schema.turns
    query = (
        select(*schema.place(table), table.c.trace)
        .where(table.c.run_id == run_id, table.c.case_position >= first, table.c.case_position < first + count)
        .order_by(*schema.place(table), table.c.number)
    )
    found: dict[Place, list[dict[str, Any] | None]] = {}
    for row in store.fetch_dicts(query):
        found.setdefault(place_of(row), []).append(decode(row["trace"]))
    return found
