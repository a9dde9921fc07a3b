"""What was worked out about runs, kept until something is added to them."""

from __future__ import annotations

import time
from contextlib import suppress

from sqlalchemy import select

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.store import Store


def cached(store: Store, name: str, stamp: str) -> bytes | None:
    """What is kept under a name, if nothing has changed since."""
    table = schema.digests
    query = select(table.c.body).where(table.c.name == name, table.c.stamp == stamp)
    with store.reading() as connection:
        body: bytes | None = connection.scalar(query)
        return body


def keep(store: Store, name: str, run_id: str, stamp: str, body: bytes) -> None:
    """Keep something; it goes with its run. A store that cannot be written keeps nothing, which is no loss."""
    row = {"name": name, "run_id": run_id, "stamp": stamp, "body": body, "made_at": time.time()}
    with suppress(StoreError):
        store.write({"digests": [row]})
