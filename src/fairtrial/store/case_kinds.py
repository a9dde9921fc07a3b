"""Kinds of cases in a plan: which cases have which category, difficulty, tag or value of a column."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import select

from fairtrial.store import schema
from fairtrial.store.rows import decode
from fairtrial.store.store import Store

KINDS = ("category", "difficulty", "tag")
_LEVELS = ("trivial", "very easy", "easy", "medium", "moderate", "normal", "hard", "very hard", "expert")

Members = dict[str, "array[int]"]  # the positions of the cases of each kind


def kinds_of_plan(store: Store, plan_id: str, by: Sequence[str]) -> dict[str, Members]:
    """Return {attribute: {kind: positions of its cases}}, without attributes that no case has.

    An attribute is one of `KINDS` or a column of the dataset. Kinds are in the order in which they first occur;
    well-known difficulties come from easy to hard.
    """
    members: dict[str, Members] = {name: {} for name in by}
    for row in _rows(store, plan_id, by):
        for name in by:
            for kind in dict.fromkeys(_kinds(row, name)):
                members[name].setdefault(kind, array("q")).append(row["position"])
    if "difficulty" in members:
        members["difficulty"] = dict(sorted(members["difficulty"].items(), key=lambda item: _level(item[0])))
    return {name: kinds for name, kinds in members.items() if kinds}


def tagged_cases(store: Store, plan_id: str, tags: Sequence[str]) -> set[int]:
    """Return the positions of the cases with any of these tags, which are stored as JSON and opaque to the database."""
    members = kinds_of_plan(store, plan_id, ("tag",)).get("tag", {})
    return {position for tag in tags for position in members.get(tag, ())}


def column_names(store: Store, plan_id: str) -> list[str]:
    """Return the names of the columns that the cases of a plan have besides those that the suite uses."""
    rows = _rows(store, plan_id, ("",))
    return list(dict.fromkeys(name for row in rows for name in _columns(row)))


def _rows(store: Store, plan_id: str, by: Sequence[str]) -> Iterator[Any]:
    """Stream what is needed of every case, in order; the texts are not read."""
    table = schema.cases
    names = ["position", "category", "difficulty", "tags"]
    names += [] if all(name in KINDS for name in by) else ["metadata"]
    query = select(*(table.c[name] for name in names)).where(table.c.plan_id == plan_id).order_by(table.c.position)
    with store.reading() as connection:
        yield from connection.execute(query.execution_options(yield_per=2000)).mappings()


def _kinds(row: Any, by: str) -> Sequence[str]:
    if by == "tag":
        return decode(row["tags"]) or ()
    value = row[by] if by in KINDS else _columns(row).get(by)
    if value is None or value == "":
        return ()
    return (value if isinstance(value, str) else msgspec.json.encode(value).decode(),)


def _columns(row: Any) -> dict[str, Any]:
    return (decode(row["metadata"]) or {}).get("columns") or {}


def _level(difficulty: str) -> int:
    name = difficulty.lower()
    return _LEVELS.index(name) if name in _LEVELS else len(_LEVELS)
