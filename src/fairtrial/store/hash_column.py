"""The column with a hash of all others of a row, in the tables of cases, answers, scores and opinions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, Table, text

from fairtrial.store.types import Integer

_SINCE = 18  # the first version with hashes
HASH, CHANGED = "row_hash", 0  # the hash of rows that were changed in place, until it is made anew


def hash_column() -> Column[int]:
    """Return the column; rows that an earlier version wrote have no hash."""
    return Column(HASH, Integer, info={"since": _SINCE})


def changed_index(table: str) -> Index:
    """Return the index of rows that were changed in place: their transaction finds them before it ends."""
    changed = text(f"{HASH} = {CHANGED}")
    return Index(f"{table}_changed", HASH, sqlite_where=changed, postgresql_where=changed)


def content(table: Table) -> list[Column[Any]]:
    """Return the columns of a table that say something: all but the hash, those of later versions last."""
    columns = [column for column in table.c if column.name != HASH]
    return sorted(columns, key=lambda column: max(_SINCE, column.info.get("since", 0)))
