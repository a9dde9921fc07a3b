"""The cases of the compared plans as columns. A case is a row; rows are in the order of the cases' contents."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtrial.store.outcomes import CaseFacts

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Chosen = NDArray[np.bool_]


class CaseRow(NamedTuple):
    """The facts about one case."""

    id: str
    weight: float
    cluster: str | None
    category: str | None
    difficulty: str | None
    tags: tuple[str, ...]


class PlanCases:
    """The cases of one plan by position. Equal texts are kept once, so a case takes a few dozen bytes."""

    def __init__(self, cases: Iterable[CaseFacts]) -> None:
        self.ids: list[str] = []
        self.weights = array("d")
        self.clusters: list[str | None] = []
        self.categories: list[str | None] = []
        self.difficulties: list[str | None] = []
        self.tags: list[tuple[str, ...]] = []
        self.scorers: list[bytes | None] = []
        self.limited: dict[int, tuple[Any, Any]] = {}  # cases that are not for all targets and conditions, as JSON
        keys: list[bytes] = []
        kept: dict[Any, Any] = {}
        for case in cases:
            keys.append(case.key.encode())
            self.ids.append(case.id)
            self.weights.append(case.weight)
            self.clusters.append(kept.setdefault(case.cluster, case.cluster))
            self.categories.append(kept.setdefault(case.category, case.category))
            self.difficulties.append(kept.setdefault(case.difficulty, case.difficulty))
            self.tags.append(kept.setdefault(case.tags, case.tags))
            self.scorers.append(kept.setdefault(case.scorer, case.scorer))
            if any(case.asked):
                self.limited[len(self.ids) - 1] = case.asked
        self.keys = np.asarray(keys, dtype=np.bytes_)

    def __len__(self) -> int:
        return len(self.ids)


class CaseTable:
    """Every case of the plans once; where plans differ in a case's weight or cluster, the first plan counts."""

    def __init__(self, plans: Sequence[PlanCases]) -> None:
        self._plans = plans
        keys = np.concatenate([plan.keys for plan in plans]) if plans else np.empty(0, dtype=np.bytes_)
        self._keys, first, rows = np.unique(keys, return_index=True, return_inverse=True)
        ends = np.cumsum([len(plan) for plan in plans])
        self.rows: list[Ints] = np.split(rows.astype(np.int64), ends[:-1]) if plans else []  # by plan and position
        self._plan_of: Ints = np.asarray(np.searchsorted(ends, first, side="right"))
        self._position_of = first - np.concatenate([[0], ends[:-1]])[self._plan_of] if plans else first

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, row: int) -> CaseRow:
        plan, place = self._plans[self._plan_of[row]], int(self._position_of[row])
        return CaseRow(
            plan.ids[place],
            plan.weights[place],
            plan.clusters[place],
            plan.categories[place],
            plan.difficulties[place],
            plan.tags[place],
        )

    def rows_of(self, other: CaseTable, rows: Ints) -> Ints:
        """Return the rows that cases of another table have in this one; −1 where this one does not have them."""
        wanted = other._keys[rows]
        places = np.searchsorted(self._keys, wanted)
        known = np.append(self._keys, b"")[places] == wanted
        return np.where(known, places, -1)

    def in_order_of_plans(self) -> list[int]:
        """Return the rows as the cases come in the plans."""
        return np.lexsort((self._position_of, self._plan_of)).tolist()  # type: ignore[no-any-return]

    def _column(self, name: str) -> Iterable[Any]:
        columns = [getattr(plan, name) for plan in self._plans]
        return (columns[plan][place] for plan, place in zip(self._plan_of, self._position_of, strict=True))

    @cached_property
    def weights(self) -> Floats:
        """The weight of every case."""
        return np.fromiter(self._column("weights"), dtype=np.float64, count=len(self))

    def leave_out(self, rows: Ints) -> None:
        """Count these cases no more: their weight is 0 from now on."""
        self.weights[rows] = 0.0

    @cached_property
    def clusters(self) -> Ints | None:
        """A number for the cluster of every case, one of its own below 0 where it has none; None without clusters."""
        names = list(self._column("clusters"))
        known = sorted({name for name in names if name is not None})
        if not known:
            return None
        numbers = {name: number for number, name in enumerate(known)}
        own = range(-len(names), 0)
        return np.asarray([alone if name is None else numbers[name] for name, alone in zip(names, own, strict=True)])

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """The categories, difficulties and tags."""
        return {
            "category": Attribute((value,) if value else () for value in self._column("categories")),
            "difficulty": Attribute((value,) if value else () for value in self._column("difficulties")),
            "tag": Attribute(self._column("tags")),
        }

    @property
    def uneven(self) -> int:
        """The number of cases whose weight or cluster is different in another plan."""
        if len(self._plans) < 2:
            return 0
        weights, clusters = self.weights, list(self._column("clusters"))
        return sum(
            plan.weights[place] != weights[row] or plan.clusters[place] != clusters[row]
            for plan, rows in zip(self._plans, self.rows, strict=True)
            for place, row in enumerate(rows)
        )


class Attribute:
    """Which values the cases have of one attribute, as pairs of value and row."""

    def __init__(self, values: Iterable[tuple[str, ...]]) -> None:
        numbers: dict[str, int] = {}
        codes, rows = array("q"), array("q")
        for row, own in enumerate(values):
            for value in dict.fromkeys(own):
                codes.append(numbers.setdefault(value, len(numbers)))
                rows.append(row)
        self.names = list(numbers)
        self._codes, self._rows = np.asarray(codes, dtype=np.int64), np.asarray(rows, dtype=np.int64)

    def among(self, chosen: Ints, size: int, *, fewest: int, most: int) -> dict[str, Chosen]:
        """Return a mask of the chosen rows for the largest values that at least `fewest` and not all of them have.

        `size` is the number of rows of the table.
        """
        places = np.full(size, -1)
        places[chosen] = np.arange(len(chosen))
        here = places[self._rows] >= 0
        codes, at = self._codes[here], places[self._rows[here]]
        counts = np.bincount(codes, minlength=len(self.names))
        usable = [int(code) for code in np.flatnonzero((counts >= fewest) & (counts < len(chosen)))]
        firsts = dict(zip(*(column.tolist() for column in _first_places(codes, at)), strict=True))
        usable.sort(key=lambda code: firsts[code])
        largest = set(sorted(usable, key=lambda code: -counts[code])[:most])
        masks = {}
        for code in usable:
            if code in largest:
                masks[self.names[code]] = np.zeros(len(chosen), dtype=bool)
                masks[self.names[code]][at[codes == code]] = True
        return masks


def _first_places(codes: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Return every code with the first place that has it."""
    order = np.argsort(places, kind="stable")
    found, index = np.unique(codes[order], return_index=True)
    return found, index
