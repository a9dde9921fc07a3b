"""The earlier turns of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from fairtrial.core.place import Place
from fairtrial.store import schema
from fairtrial.store.store import Store


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
    return store.fetch_dicts(query)
