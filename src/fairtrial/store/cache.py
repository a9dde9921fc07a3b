"""A cache of results computed from runs, valid until something is added to them."""

from __future__ import annotations

import time
from contextlib import suppress

from sqlalchemy import select

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.store import Store


def cached(store: Store, name: str, stamp: str) -> bytes | None:
    """Return the cached result of this name, if nothing has changed since."""
    table = schema.digests
    query = select(table.c.body).where(table.c.name == name, table.c.stamp == stamp)
    with store.reading() as connection:
        body: bytes | None = connection.scalar(query)
        return body


def keep(store: Store, name: str, run_id: str, stamp: str, body: bytes) -> None:
    """Cache a result, which is deleted with its run. If the store cannot be written, nothing is cached."""
    row = {"name": name, "run_id": run_id, "stamp": stamp, "body": body, "made_at": time.time()}
    with suppress(StoreError):
        store.write({"digests": [row]})
