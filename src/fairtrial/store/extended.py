"""Find the run that a new one extends: the same arms on the same cases and more, which were looked at before."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from sqlalchemy import select

from fairtrial.core.settings import FEWEST_CASES, LookAgain
from fairtrial.store import schema
from fairtrial.store.run_queries import run_query
from fairtrial.store.store import Store

_ENDED = ("completed", "stopped")


def extended(store: Store, suite: str, arms: bytes, count: int, cases: Iterable[tuple[str, str]]) -> LookAgain | None:
    """Return the latest run of a suite with the same arms whose cases are all among these `count`, and fewer.

    `cases` are their ids and inputs, read only where there may be one. A run of a handful of cases does not count.
    """
    plans = schema.plans
    smaller = run_query().where(
        plans.c.suite_name == suite,
        plans.c.arms == arms,
        plans.c.case_count >= FEWEST_CASES,
        plans.c.case_count < count,
        schema.runs.c.status.in_(_ENDED),
    )
    found = store.runs_in(smaller.order_by(schema.runs.c.number.desc()).limit(1))
    if not found:
        return None
    columns = select(schema.cases.c.id, schema.cases.c.input).where(schema.cases.c.plan_id == found[0].plan_id)
    missing = {(row[0], row[1]) for row in store.fetch(columns)}
    for case in cases:
        missing.discard(case)
    if missing:
        return None
    before = msgspec.convert(msgspec.json.decode(found[0].settings).get("again"), LookAgain | None)
    asked = store.plan(found[0].plan_id).case_count
    return LookAgain(look=before.look + 1 if before else 2, run=found[0].id, number=found[0].number, cases=asked)
