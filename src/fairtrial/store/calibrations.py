"""How far judges agreed with known marks, each time they were calibrated."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, insert, select

from fairtrial.core.ids import sorted_after
from fairtrial.store import schema
from fairtrial.store.store import Store


def add_calibration(store: Store, row: dict[str, Any]) -> None:
    """Store the calibration of a judge; its id sorts after all others, also if the clock was set back."""
    table = schema.calibrations
    with store.writing() as connection:
        store.dialect.serialise(connection, "calibrations")
        newest = connection.scalar(select(func.max(table.c.id)))
        connection.execute(insert(table).values({**row, "id": sorted_after(newest, row["id"])}))


def calibrations_of(store: Store, judge_key: str) -> list[dict[str, Any]]:
    """Return all calibrations of a judge, with any prompt, newest first."""
    table = schema.calibrations
    return store.fetch_dicts(select(table).where(table.c.judge_key == judge_key).order_by(table.c.id.desc()))
