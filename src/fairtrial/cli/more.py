"""`fairtrial run --more N`: the cases of the latest run of a suite, whose answers are used again, and N more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store
from fairtrial.store.records import RunRecord

if TYPE_CHECKING:
    from fairtrial.config import Suite

_SELECT = ("cases", "limit", "first", "repeats")


def more_cases(suite: Suite, store: Store, more: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that select the cases of the latest run and this many more."""
    given = [f"--{name.removesuffix('s') if name == 'cases' else name}" for name in _SELECT if options.get(name)]
    given += [f"--{name.replace('_', '-')}" for name in ("stop_when", "looks", "race", "gap") if options.get(name)]
    if given:
        raise click.UsageError(f"--more cannot be combined with {given[0]}: it repeats what the latest run selected")
    latest = next((run for run in store.runs_of(suite.name) if run.status in ("completed", "stopped")), None)
    if latest is None:
        raise FairtrialError(f"there is no run of `{suite.name}` yet that ended: run it first, such as with --limit 40")
    return {**_selected(latest, suite.case_count, more), "cache": True, "looks": 0}


def _selected(latest: RunRecord, count: int, more: int) -> dict[str, Any]:
    """Return what a run selected, with more of these cases; raise if it asked all of them."""
    selected = dict(latest.selected or {})
    by = next((name for name in ("limit", "first") if selected.get(name)), None)
    if by is None or selected[by] >= count:
        raise FairtrialError(
            f"run {latest.number} asked all its cases: add cases to the suite or its dataset, and run it with --cache"
        )
    return {**selected, "cases": tuple(selected.get("cases", ())), by: selected[by] + more}
