"""What a run has cost in addition to the rows of its trials and verdicts, and what calls in flight may cost."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, or_, select

from fairtrial.core.money import Cost, at_most, total
from fairtrial.store import schema
from fairtrial.store.rows import cost_columns, read_cost
from fairtrial.store.store import Store


def ledger_row(run_id: str, at_risk_usd: float, cost: Cost = Cost()) -> dict[str, Any]:  # noqa: B008
    """Return a change to a run's ledger: `cost` is added, `at_risk_usd` is what calls in flight may now cost."""
    return {"run_id": run_id, **cost_columns(cost), "at_risk_usd": at_risk_usd}


def spent(store: Store, run_id: str) -> Cost:
    """Return the total cost of a run: whatever has a row, late ones too, and calls without one.

    Calls in flight, which may have been lost with their process, count with their maximum.
    """
    at_risk = schema.ledgers.c.at_risk_usd
    usd = float(store.fetch_value(select(func.sum(at_risk)).where(schema.ledgers.c.run_id == run_id)) or 0.0)
    return _total_cost(store, schema.runs.c.id == run_id) + at_most(usd)


def charged(store: Store, run_id: str, series_id: str | None = None) -> float:
    """Return the USD charged to a run or its whole series; calls of unknown cost count with their maximum,
    and so do requests in batches whose results are not stored.
    """
    runs = schema.runs
    selected = or_(runs.c.id == run_id, runs.c.series_id == (series_id or run_id))
    at_risk = select(func.sum(schema.ledgers.c.at_risk_usd)).join(runs).where(selected)
    requests = schema.batch_requests
    in_batches = select(func.sum(requests.c.usd)).join(runs).where(selected, requests.c.done.is_(False))
    more = [float(store.fetch_value(query) or 0.0) for query in (at_risk, in_batches)]
    return _total_cost(store, selected).charged + sum(more)


def user_cost(store: Store, run_id: str) -> Cost:
    """Return what the simulated user of a run cost."""
    with store.reading() as connection:
        return _sums(connection, schema.turns, schema.runs.c.id == run_id, "user_")


def _total_cost(store: Store, selected: ColumnElement[bool]) -> Cost:
    tables = (schema.trials, schema.turns, schema.judgements, schema.pairs, schema.ledgers, schema.late)
    with store.reading() as connection:
        costs = [_sums(connection, table, selected) for table in tables]
        return total([*costs, _sums(connection, schema.turns, selected, "user_")])


def _sums(connection: Connection, table: Table, selected: ColumnElement[bool], prefix: str = "") -> Cost:
    sums = [func.sum(table.c[prefix + name]).label(name) for name in schema.COSTS]
    query = select(*sums).where(table.c.run_id.in_(select(schema.runs.c.id).where(selected)))
    return read_cost(connection.execute(query).mappings().one())
