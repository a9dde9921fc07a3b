"""Large results of queries, batch by batch: as rows, or as columns of plain numbers and texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Select

from fairtrial.store.store import Store

Columns = tuple[tuple[Any, ...], ...]
_BATCH = 4000


def row_batches(store: Store, query: Select[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the rows of a query, many at a time."""
    with store.reading() as connection:
        yield from connection.execute(query.execution_options(yield_per=_BATCH)).partitions()


def column_batches(store: Store, query: Select[Any]) -> Iterator[Columns]:
    """Yield the columns of a query as the driver gives them, for many rows at a time.

    Making SQLAlchemy's rows takes as long as the query itself; numbers and texts need no conversion. The option
    `stream_results` would leave the first row in SQLAlchemy's own buffer.
    """
    with store.reading() as connection:
        result = connection.execute(query)
        cursor = result.cursor
        assert cursor is not None
        while batch := cursor.fetchmany(_BATCH):
            yield tuple(zip(*batch, strict=True))
