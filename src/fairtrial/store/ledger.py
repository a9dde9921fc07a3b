"""What a run has cost beside the rows of its trials and verdicts, and what calls under way may cost."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, update

from fairtrial.core.money import Cost, total
from fairtrial.store import schema
from fairtrial.store.rows import cost_columns, read_cost
from fairtrial.store.store import Store


def ledger_row(run_id: str, at_risk_usd: float, cost: Cost = Cost()) -> dict[str, Any]:  # noqa: B008
    """A change of a run's ledger: `cost` is added, `at_risk_usd` is what calls under way may cost from now on."""
    return {"run_id": run_id, **cost_columns(cost), "at_risk_usd": at_risk_usd}


def settle_crash(store: Store, run_id: str) -> None:
    """Count what was at risk when a process died as spent: nobody can say that it was not."""
    table = schema.ledgers
    lost = {
        "charged_usd": table.c.charged_usd + table.c.at_risk_usd,
        "unknown_costs": table.c.unknown_costs + 1,
        "at_risk_usd": 0.0,
    }
    with store.writing() as connection:
        connection.execute(update(table).where(table.c.run_id == run_id, table.c.at_risk_usd > 0).values(**lost))


def spent(store: Store, run_id: str) -> Cost:
    """What a run has cost in all: answers, verdicts of every scoring, pairs, and calls that left no row."""
    return _sum(store, schema.runs.c.id == run_id)


def charged(store: Store, run_id: str, series_id: str | None = None) -> float:
    """What a run, or the whole series it belongs to, has been charged in USD: the worst where nobody knows."""
    runs = schema.runs
    mine = or_(runs.c.id == run_id, runs.c.series_id == (series_id or run_id))
    at_risk = select(func.sum(schema.ledgers.c.at_risk_usd)).join(runs).where(mine)
    with store.reading() as connection:
        return _sum(store, mine).charged + float(connection.scalar(at_risk) or 0.0)


def _sum(store: Store, which: ColumnElement[bool]) -> Cost:
    names = ("cost_usd", "charged_usd", "unknown_costs")
    with store.reading() as connection:
        costs = []
        for table in (schema.trials, schema.judgements, schema.pairs, schema.ledgers):
            sums = [func.sum(table.c[name]).label(name) for name in names]
            mine = select(schema.runs.c.id).where(which)
            query = select(*sums).where(table.c.run_id.in_(mine))
            costs.append(read_cost(connection.execute(query).mappings().one()))
        return total(costs)
