"""Writing a whole run that was made elsewhere: cases, trials and scores in batches, while they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update

from fairtrial.store import schema
from fairtrial.store.arriving import IMPORTING
from fairtrial.store.deleting import delete_rows
from fairtrial.store.hash_column import CHANGED, HASH
from fairtrial.store.lease import insert_run
from fairtrial.store.planned import target_rows
from fairtrial.store.plans import insert_plan
from fairtrial.store.records import RunRecord
from fairtrial.store.row_hashes import hash_changed
from fairtrial.store.run_queries import run_query
from fairtrial.store.statements import INSERT_CASES, UPSERTS
from fairtrial.store.store import Store
from fairtrial.store.types import json_text


class ImportedRun:
    """A run in the making; `finish` makes it whole, and until then its reason says that it is being imported."""

    def __init__(self, store: Store, run_id: str, plan_id: str, earlier: Sequence[str] = ()) -> None:
        """`earlier` are attempts at the same run, whose place it takes once it is whole."""
        self._store, self.run_id, self.plan_id, self._earlier = store, run_id, plan_id, earlier
        self.replaced: tuple[str, ...] = ()

    def begin(self, plan: dict[str, Any], run: dict[str, Any]) -> None:
        """Write the plan and the run without content, in the place of what an import that was cut off has left."""
        tags = schema.tags
        with self._store.writing() as connection:
            query = select(tags).where(tags.c.run_id == self.run_id)
            named = [dict(row) for row in connection.execute(query).mappings()]
            self._remove(connection)
            insert_plan(connection, {**plan, "id": self.plan_id, "arms": b"[]"})
            row = {**run, "id": self.run_id, "plan_id": self.plan_id, "reason": IMPORTING}
            insert_run(connection, self._store.dialect, row)
            if named:
                connection.execute(insert(tags), named)

    def write(
        self,
        cases: list[dict[str, Any]],
        trials: list[dict[str, Any]],
        scores: list[dict[str, Any]],
        arms: bytes | None,
    ) -> None:
        """Write rows in one transaction, with the arms if these are other ones: a part of a run can be looked at."""
        with self._store.writing() as connection:
            if arms is not None:
                plans = schema.plans
                connection.execute(update(plans).where(plans.c.id == self.plan_id).values(arms=arms))
            if cases:
                INSERT_CASES.execute(connection, self._store.dialect, cases)
            for table, rows in (("trials", trials), ("scores", scores)):
                if rows:
                    UPSERTS[table].execute(connection, self._store.dialect, rows)

    def finish(self, arms: bytes, case_count: int, repeats: int, run: dict[str, Any]) -> None:
        """Write what is known only at the end; cases that were asked less often than others say so."""
        cases, trials = schema.cases, schema.trials
        asked = (
            select(func.max(trials.c.repeat) + 1)
            .where(trials.c.run_id == self.run_id, trials.c.case_position == cases.c.position)
            .scalar_subquery()
        )
        with self._store.writing() as connection:
            whole = update(schema.plans).where(schema.plans.c.id == self.plan_id)
            connection.execute(whole.values(arms=arms, case_count=case_count))
            if targets := target_rows(self.plan_id, arms):
                connection.execute(insert(schema.plan_targets), targets)
            if repeats > 1:
                fewer = update(cases).where(cases.c.plan_id == self.plan_id, asked < repeats)
                connection.execute(fewer.values({"repeats": asked, HASH: CHANGED}))
                hash_changed(connection, cases, cases.c.plan_id == self.plan_id)
            connection.execute(update(schema.runs).where(schema.runs.c.id == self.run_id).values(**run))
            self.replaced = tuple(name for name in self._earlier if not _is_cared_for(connection, name))
            for name in self.replaced:
                delete_rows(self._store.dialect, connection, name)

    def discard(self) -> None:
        """Remove everything written so far."""
        with self._store.writing() as connection:
            self._remove(connection)

    def _remove(self, connection: Connection) -> None:
        connection.execute(delete(schema.runs).where(schema.runs.c.id == self.run_id))
        others = select(schema.runs.c.id).where(schema.runs.c.plan_id == self.plan_id).limit(1)
        if connection.scalar(others) is None:
            connection.execute(delete(schema.plans).where(schema.plans.c.id == self.plan_id))


def find_imported(store: Store, run_id: str) -> RunRecord | None:
    """Return the run with this id, if it is there."""
    rows = store.fetch_dicts(run_query().where(schema.runs.c.id == run_id))
    return RunRecord(**rows[0]) if rows else None


def attempts_at(store: Store, tool: str, lineage: str) -> list[tuple[RunRecord, dict[str, Any]]]:
    """Return the imported attempts at the same run of another tool, with where they came from."""
    found = []
    query = run_query().where(json_text(schema.runs.c.context).contains(lineage, autoescape=True))
    for record in (RunRecord(**row) for row in store.fetch_dicts(query)):
        origin = msgspec.json.decode(record.context).get("imported") or {}
        if origin.get("tool") == tool and origin.get("lineage") == lineage:
            found.append((record, origin))
    return found


def _is_cared_for(connection: Connection, run_id: str) -> bool:
    """Return whether users added anything to a run: labels, votes, tags, or another scoring."""
    tables = (schema.labels, schema.votes, schema.tags, schema.pairs)
    again = select(schema.scorings.c.number).where(schema.scorings.c.run_id == run_id, schema.scorings.c.number > 0)
    queries = [*(select(table.c.run_id).where(table.c.run_id == run_id) for table in tables), again]
    return any(connection.scalar(query.limit(1)) is not None for query in queries)
