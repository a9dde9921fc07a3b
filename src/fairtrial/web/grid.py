"""Cases × arms: which cases are asked for, in which order, and a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from starlette.datastructures import QueryParams

from fairtrial.analyse import Run
from fairtrial.store import browsing
from fairtrial.store.browsing import SHOWS, CaseQuery, Cell
from fairtrial.web.site import Site, url

CASES = 50
_ORDERS: dict[Any, Sequence[int]] = {}  # of runs that are over
_ORDERING = Lock()
_MOST_ORDERS = 50


def grid(site: Site, run: Run, asked: QueryParams) -> dict[str, Any]:
    """Cases × arms, a page of them."""
    wanted = case_query(asked)
    number = page_number(asked)
    everything = ordered(site, run, wanted)
    positions = everything[(number - 1) * CASES : number * CASES]
    cases = site.store.cases_at(run.plan.id, positions)
    found: dict[tuple[int, int], Cell] = {
        (cell.case, cell.arm): cell for cell in browsing.cells(site.store, run.record, positions)
    }
    kept = {**wanted._asdict(), "show": "" if wanted.show == "all" else wanted.show}
    return {
        "grid": [(case, [found.get((case.position, arm.position)) for arm in run.plan_arms]) for case in cases],
        "asked": wanted,
        "kept": kept,
        "kinds": browsing.kinds_of_cases(site.store, run.plan.id),
        "grid_total": len(everything),
        "pager": pager(f"/runs/{run.id}", kept, number, len(everything), CASES, anchor="#cases"),
    }


def ordered(site: Site, run: Run, wanted: CaseQuery) -> Sequence[int]:
    """The positions of the cases that are wanted; of a run that is over they are kept."""
    if wanted == CaseQuery():
        return range(run.plan.case_count)
    if run.status == "running":
        return browsing.ordered_cases(site.store, run.record, wanted)
    key = (site.store.path, run.id, browsing.stamp(site.store, run.record), wanted)
    with _ORDERING:
        known = _ORDERS.get(key)
    if known is None:
        known = browsing.ordered_cases(site.store, run.record, wanted)
        with _ORDERING:
            _ORDERS[key] = known
            while len(_ORDERS) > _MOST_ORDERS:
                del _ORDERS[next(iter(_ORDERS))]
    return known


def case_query(asked: QueryParams) -> CaseQuery:
    """Which cases an address asks for."""
    show = asked.get("show", "all")
    sort = asked.get("sort", "")
    return CaseQuery(
        show=show if show in SHOWS else "all",
        text=asked.get("text", "").strip(),
        category=asked.get("category", ""),
        difficulty=asked.get("difficulty", ""),
        sort=sort if sort in ("spread", "mean") or is_position(sort) else "",
        descending=asked.get("descending", "") == "True",
    )


def page_number(asked: QueryParams) -> int:
    """Which page of something long."""
    given = asked.get("page", "1")
    return max(1, int(given)) if is_position(given) else 1


def is_position(text: str) -> bool:
    """Whether it is a number that a place in something can have."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def pager(path: str, kept: dict[str, Any], number: int, total: int, size: int, anchor: str = "") -> dict[str, Any]:
    """Where the other pages are."""
    last = max(1, -(-total // size))
    there = {n: url(path, **kept, page=n if n > 1 else "") + anchor for n in {1, number - 1, number + 1, last}}
    return {"number": number, "last": last, "there": there, "total": total}
