"""A cache of results computed from runs, valid until something is added to them or the code that computes changes."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import delete, select

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.store import Store

_MOST = 100  # results about one run: pages take parameters, so that there is no end to what can be asked for


def cached(store: Store, name: str, stamp: str) -> bytes | None:
    """Return the cached result of this name, if nothing has changed since."""
    table = schema.digests
    body: bytes | None = store.fetch_value(select(table.c.body).where(table.c.name == name, table.c.stamp == stamp))
    return body


def keep(store: Store, name: str, run_id: str, stamp: str, body: bytes) -> None:
    """Cache a result, which is deleted with its run. If the store cannot be written, nothing is cached."""
    row = {"name": name, "run_id": run_id, "stamp": stamp, "body": body, "made_at": time.time()}
    table = schema.digests
    newest = select(table.c.name).where(table.c.run_id == run_id).order_by(table.c.made_at.desc()).limit(_MOST)
    with suppress(StoreError):
        store.write({"digests": [row]})
        with store.writing() as connection:
            connection.execute(delete(table).where(table.c.run_id == run_id, table.c.name.not_in(newest)))


def drop_other_code(store: Store, codes: Collection[str]) -> None:
    """Delete the results of all code but this: their stamps begin with the key of the code that computed them."""
    column = schema.digests.c.stamp
    with suppress(StoreError), store.writing() as connection:
        connection.execute(delete(schema.digests).where(*(column.not_like(f"{code}|%") for code in codes)))
