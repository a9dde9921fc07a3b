"""Writing a whole run that was made elsewhere: cases, trials and scores in batches, while they are read."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import delete, func, insert, select, update

from fairtrial.store import schema
from fairtrial.store.plans import begin_plan
from fairtrial.store.statements import INSERT_CASES, UPSERTS
from fairtrial.store.store import RunRecord, Store, run_query
from fairtrial.store.types import json_text


class ImportedRun:
    """A run in the making; `finish` makes it readable, and until then it counts as interrupted."""

    def __init__(self, store: Store, run_id: str, plan_id: str) -> None:
        self._store, self.run_id, self.plan_id = store, run_id, plan_id

    def begin(self, plan: dict[str, Any], run: dict[str, Any]) -> None:
        """Write the plan and the run without content; remains of an import that was interrupted are removed."""
        self.discard()
        begin_plan(self._store, {**plan, "id": self.plan_id, "arms": b"[]"})
        self._store.add_run({**run, "id": self.run_id, "plan_id": self.plan_id})

    def write(self, cases: list[dict[str, Any]], trials: list[dict[str, Any]], scores: list[dict[str, Any]]) -> None:
        """Write rows in one transaction."""
        with self._store.writing() as connection:
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
            if targets := schema.target_rows(self.plan_id, arms):
                connection.execute(insert(schema.plan_targets), targets)
            if repeats > 1:
                connection.execute(
                    update(cases).where(cases.c.plan_id == self.plan_id, asked < repeats).values(repeats=asked)
                )
            connection.execute(update(schema.runs).where(schema.runs.c.id == self.run_id).values(**run))

    def discard(self) -> None:
        """Remove everything written so far."""
        with self._store.writing() as connection:
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


def is_cared_for(store: Store, run_id: str) -> bool:
    """Return whether users added anything to a run: labels, votes, tags, or another scoring."""
    tables = (schema.labels, schema.votes, schema.tags, schema.pairs)
    again = select(schema.scorings.c.number).where(schema.scorings.c.run_id == run_id, schema.scorings.c.number > 0)
    queries = [*(select(table.c.run_id).where(table.c.run_id == run_id) for table in tables), again]
    return any(store.fetch_value(query.limit(1)) is not None for query in queries)
