"""The grid of cases × arms: filtering, sorting and paging of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import QueryParams

from fairtrial.analyse.run import Run
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.store import browsing
from fairtrial.store.browsing import SHOWS, CaseCell, CaseQuery
from fairtrial.web.cache import patience
from fairtrial.web.site import Site, url

CASES = 25
_FEWEST_CASES, _MAX_CELLS = 10, 600  # of one page: with many arms, it has fewer cases
_MAX_ANSWERS = 8  # arms up to which there is room for their answers
_SNIPPET = 140  # characters of an answer


def grid(site: Site, run: Run, params: QueryParams, order: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values of one page of the grid; its columns are the arms in this order, then those not named in it.

    There is no `grid` yet while the cases are being put in order.
    """
    query = case_query(params)
    number = page_number(params)
    size = max(_FEWEST_CASES, min(CASES, _MAX_CELLS // len(run.plan_arms)))
    everything = site.orders.get(run, query, wait=patience(params))
    positions = [] if everything is None else everything[(number - 1) * size : number * size]
    total = None if everything is None else len(everything)
    cases = site.store.cases_at(run.plan.id, positions)
    cells: dict[tuple[int, int], CaseCell] = {
        (cell.case, cell.arm): cell for cell in browsing.cells(site.store, run.record, positions)
    }
    place = {name: number for number, name in enumerate(order)}
    arms = sorted(run.plan_arms, key=lambda arm: place.get(arm.name, len(order)))
    whole = params.get("arms") == "all"
    columns = arms if whole else arms[:MOST_ARMS]
    many = len(columns) > _MAX_ANSWERS
    view = "scores" if params.get("view") == "scores" or many else ""
    texts = {} if view else browsing.snippets(site.store, run.record, positions, _SNIPPET)
    kept = {
        **query._asdict(),
        "show": "" if query.show == "all" else query.show,
        "view": view,
        "arms": "all" if whole else "",
    }
    return {
        "grid": None
        if everything is None
        else [
            (
                case,
                [
                    (arm, cells.get((case.position, arm.position)), texts.get((case.position, arm.position), ""))
                    for arm in columns
                ],
            )
            for case in cases
        ],
        "columns": columns,
        "more_arms": len(arms) - len(columns),
        "case_query": query,
        "kept": kept,
        "kinds": site.cache.constant(f"kinds/{run.plan.id}", lambda: browsing.kinds_of_cases(site.store, run.plan.id)),
        "grid_total": total,
        "grid_later": url(f"/runs/{run.id}", **kept, page=number, wait=1),
        "pager": pager(f"/runs/{run.id}", kept, number, total or 0, size, anchor="#cases"),
    }


def case_query(params: QueryParams) -> CaseQuery:
    """Return the case filter and order given in an address."""
    show = params.get("show", "all")
    sort = params.get("sort", "")
    return CaseQuery(
        show=show if show in SHOWS else "all",
        text=params.get("text", "").strip(),
        category=params.get("category", ""),
        difficulty=params.get("difficulty", ""),
        tag=params.get("tag", ""),
        sort=sort if sort in ("spread", "mean") or is_position(sort) else "",
        descending=params.get("descending", "") == "True",
    )


def page_number(params: QueryParams) -> int:
    """Return the page number given in an address; 1 if it is missing or invalid."""
    text = params.get("page", "1")
    return max(1, int(text)) if is_position(text) else 1


def is_position(text: str) -> bool:
    """Return whether a text is a number that can be a position."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def pager(path: str, kept: dict[str, Any], number: int, total: int, size: int, anchor: str = "") -> dict[str, Any]:
    """Return the page number, the last page and the addresses of the other pages."""
    last = max(1, -(-total // size))
    there = {n: url(path, **kept, page=n if n > 1 else "") + anchor for n in {1, number - 1, number + 1, last}}
    return {"number": number, "last": last, "there": there, "total": total}
