"""Files created while scoring, such as screenshots, by trial and by content."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from fairtrial.core.place import Place, place_of
from fairtrial.store import schema
from fairtrial.store.store import Store


def attachments(
    store: Store, run_id: str, *, first: int = 0, count: int | None = None, place: Place | None = None
) -> dict[Place, dict[str, str]]:
    """Return the hashes of a run's files by trial and name; of a slice of its cases, or of one trial."""
    table = schema.attachments
    query = select(table).where(table.c.run_id == run_id, table.c.case_position >= first)
    if count is not None:
        query = query.where(table.c.case_position < first + count)
    if place is not None:
        query = query.where(*schema.at(table, place))
    hashes: dict[Place, dict[str, str]] = {}
    with store.reading() as connection:
        for row in connection.execute(query.order_by(*table.primary_key)).mappings():
            hashes.setdefault(place_of(row), {})[row["name"]] = row["sha256"]
    return hashes


def scored_by(store: Store, run_id: str, scoring: int, names: Sequence[str], *, among: int | None = None) -> bool:
    """Return whether one of these scorers has scored any answer of a run; `among` limits this to its first cases."""
    table = schema.scores
    conditions = [table.c.run_id == run_id, table.c.scoring == scoring, table.c.scorer.in_(names)]
    if among is not None:
        conditions.append(table.c.case_position < among)
    with store.reading() as connection:
        return connection.execute(select(table.c.scorer).where(*conditions).limit(1)).first() is not None


def contents(store: Store, hashes: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Return (media type, bytes) by hash."""
    table = schema.files
    query = select(table).where(table.c.sha256.in_(hashes))
    with store.reading() as connection:
        return {row["sha256"]: (row["media"], row["body"]) for row in connection.execute(query).mappings()}
