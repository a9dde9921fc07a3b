"""What is deleted with a run."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, select

from fairtrial.store import schema
from fairtrial.store.dialect import Dialect


def delete_rows(dialect: Dialect, connection: Connection, run_id: str) -> None:
    """Delete a run with its answers and scores, its plan if no other run uses it, and files that nothing uses."""
    runs, plans = schema.runs, schema.plans
    plan_id = connection.scalar(select(runs.c.plan_id).where(runs.c.id == run_id))
    connection.execute(delete(runs).where(runs.c.id == run_id))
    if not connection.scalar(select(func.count()).select_from(runs).where(runs.c.plan_id == plan_id)):
        connection.execute(delete(plans).where(plans.c.id == plan_id))
    dialect.serialise(connection, "files")  # others may be about to use a file that nothing uses yet
    used = select(schema.attachments.c.sha256).union(select(schema.plan_files.c.sha256))
    connection.execute(delete(schema.files).where(schema.files.c.sha256.not_in(used)))
