"""Kinds of cases: the categories, difficulties and tags that divide the cases of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairtrial.store.outcomes import CaseFacts

_MOST_KINDS = 30  # the largest kinds of one attribute; more would not be read, and small kinds show nothing
_FEWEST_CASES = 3

Chosen = NDArray[np.bool_]


def kinds_of(cases: Sequence[CaseFacts]) -> dict[str, dict[str, Chosen]]:
    """Return {attribute: {value: mask of its cases}} for values that some cases have and others do not."""
    columns: dict[str, list[tuple[str, ...]]] = {
        "category": [(case.category,) if case.category else () for case in cases],
        "difficulty": [(case.difficulty,) if case.difficulty else () for case in cases],
        "tag": [case.tags for case in cases],
    }
    kinds_by = {by: _kinds(column) for by, column in columns.items()}
    for by in ("category", "difficulty"):  # drop tags that only repeat a category or difficulty
        for which in kinds_by[by].values():
            kinds_by["tag"] = {tag: own for tag, own in kinds_by["tag"].items() if not np.array_equal(own, which)}
    return {by: kinds for by, kinds in kinds_by.items() if kinds}


def _kinds(column: Sequence[tuple[str, ...]]) -> dict[str, Chosen]:
    places: dict[str, list[int]] = {}
    for place, values in enumerate(column):
        for value in dict.fromkeys(values):
            places.setdefault(value, []).append(place)
    usable = {value: cases for value, cases in places.items() if _FEWEST_CASES <= len(cases) < len(column)}
    largest = sorted(usable, key=lambda value: -len(usable[value]))[:_MOST_KINDS]
    kinds = {}
    for value in (value for value in usable if value in set(largest)):
        kinds[value] = np.zeros(len(column), dtype=bool)
        kinds[value][usable[value]] = True
    return kinds
