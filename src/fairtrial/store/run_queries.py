"""Queries that find runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select

from fairtrial.store import schema

_LONGEST_NUMBER = 10  # digits of a run's


def run_query() -> Select[Any]:
    """Select runs with the names of their suites: the columns of a `RunRecord`."""
    runs, plans = schema.runs, schema.plans
    return select(runs, plans.c.suite_name).join(plans, plans.c.id == runs.c.plan_id)


def named_query(names: Sequence[str]) -> Select[Any]:
    """Select the runs whose id or series begins with one of these names, or that have it as their number."""
    runs = schema.runs
    may_be: list[ColumnElement[bool]] = []
    for name in names:
        may_be += [column.istartswith(name, autoescape=True) for column in (runs.c.id, runs.c.series_id)]
        may_be += [runs.c.number == int(name)] if name.isdecimal() and len(name) < _LONGEST_NUMBER else []
    return run_query().where(or_(*may_be)).order_by(runs.c.number.desc())
