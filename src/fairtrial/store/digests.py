"""What was worked out about runs, kept until something is added to them."""

from __future__ import annotations

import time
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert as upsert

from fairtrial.core.errors import StoreError
from fairtrial.store import schema
from fairtrial.store.database import translated
from fairtrial.store.store import Store


def digest(store: Store, name: str, stamp: str) -> bytes | None:
    """What is kept under a name, if nothing has changed since."""
    table = schema.digests
    query = select(table.c.body).where(table.c.name == name, table.c.stamp == stamp)
    with translated(store.path), store.engine.connect() as connection:
        body: bytes | None = connection.scalar(query)
        return body


def keep_digest(store: Store, name: str, run_id: str, stamp: str, body: bytes) -> None:
    """Keep something; it goes with its run. A store that cannot be written keeps nothing, which is no loss."""
    table = schema.digests
    row = {"name": name, "run_id": run_id, "stamp": stamp, "body": body, "made_at": time.time()}
    change = upsert(table).values(row)
    change = change.on_conflict_do_update(index_elements=[table.c.name], set_=row)
    with suppress(StoreError), translated(store.path), store.engine.begin() as connection:
        connection.execute(change)
