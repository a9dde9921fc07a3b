"""How the answers of a run were scored, and scored again: each time is a scoring with a number."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from sqlalchemy import and_, func, insert, select, update

from fairtrial.store import rows, schema
from fairtrial.store.lease import RunLease
from fairtrial.store.store import Store

_SCORINGS = schema.scorings


class ScoringRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A scoring of a run: its number, what differs from the suite, and whether it is complete."""

    number: int
    how: dict[str, Any]
    created_at: float
    completed: bool


def add_scoring(lease: RunLease, scorer: bytes | None) -> int:
    """Add a scoring and return its number, or return that of an unfinished one with the same scorer."""
    run_id = lease.run_id
    same = _SCORINGS.c.run_id == run_id, _SCORINGS.c.completed.is_(False), _SCORINGS.c.scorer == scorer
    with lease.writing() as connection:
        unfinished = connection.scalar(select(_SCORINGS.c.number).where(*same))
        # A user's function may have changed since: do not mix its old and new scores.
        if unfinished is not None and not _runs_own_code(rows.decode(scorer)):
            return int(unfinished)
        last = connection.scalar(select(func.max(_SCORINGS.c.number)).where(_SCORINGS.c.run_id == run_id)) or 0
        row = {"run_id": run_id, "number": last + 1, "scorer": scorer, "created_at": time.time()}
        connection.execute(insert(_SCORINGS).values(**row, completed=False))
        return int(last) + 1


def finish_scoring(lease: RunLease, number: int, status: str) -> None:
    """Make this scoring the run's current one, with the status that the run has by it."""
    chosen = and_(_SCORINGS.c.run_id == lease.run_id, _SCORINGS.c.number == number)
    run = schema.runs.c.id == lease.run_id
    with lease.writing() as connection:
        connection.execute(update(_SCORINGS).where(chosen).values(completed=True))
        connection.execute(update(schema.runs).where(run).values(scoring=number, status=status))


def scoring_choice(store: Store, run_id: str, number: int) -> dict[str, Any]:
    """Return the `scorer` and `judge` of a scoring that differ from the suite's."""
    query = select(_SCORINGS.c.scorer).where(_SCORINGS.c.run_id == run_id, _SCORINGS.c.number == number)
    return rows.decode(store.fetch_value(query)) or {}


def scorings_of(store: Store, run_id: str) -> list[ScoringRecord]:
    """Return all scorings of a run, oldest first."""
    query = select(_SCORINGS).where(_SCORINGS.c.run_id == run_id).order_by(_SCORINGS.c.number)
    return [
        ScoringRecord(
            number=row["number"],
            how=rows.decode(row["scorer"]) or {},
            created_at=row["created_at"],
            completed=bool(row["completed"]),
        )
        for row in store.fetch_dicts(query)
    ]


def _runs_own_code(how: Any) -> bool:
    """Return whether a scorer, or one inside it, is a user's function or program."""
    if isinstance(how, dict):
        return how.get("type") in ("python", "check") or any(map(_runs_own_code, how.values()))
    return isinstance(how, list) and any(map(_runs_own_code, how))
