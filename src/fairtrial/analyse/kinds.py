"""Kinds of cases: categories, difficulties and tags that tell the cases of a comparison apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairtrial.store.outcomes import CaseFacts

_MOST_KINDS = 30  # of one attribute, the largest ones: nobody reads more, and nothing small can show anything
_FEWEST_CASES = 3

Chosen = NDArray[np.bool_]


def kinds_of(cases: Sequence[CaseFacts]) -> dict[str, dict[str, Chosen]]:
    """{attribute: {value: which cases have it}}, for values that some cases have and others do not."""
    columns: dict[str, list[tuple[str, ...]]] = {
        "category": [(case.category,) if case.category else () for case in cases],
        "difficulty": [(case.difficulty,) if case.difficulty else () for case in cases],
        "tag": [case.tags for case in cases],
    }
    found = {by: _kinds(column) for by, column in columns.items()}
    for by in ("category", "difficulty"):  # a tag that only repeats them says nothing new
        for which in found[by].values():
            found["tag"] = {tag: own for tag, own in found["tag"].items() if not np.array_equal(own, which)}
    return {by: kinds for by, kinds in found.items() if kinds}


def _kinds(column: Sequence[tuple[str, ...]]) -> dict[str, Chosen]:
    places: dict[str, list[int]] = {}
    for place, values in enumerate(column):
        for value in dict.fromkeys(values):
            places.setdefault(value, []).append(place)
    telling = {value: own for value, own in places.items() if _FEWEST_CASES <= len(own) < len(column)}
    largest = sorted(telling, key=lambda value: -len(telling[value]))[:_MOST_KINDS]
    kinds = {}
    for value in (value for value in telling if value in set(largest)):
        kinds[value] = np.zeros(len(column), dtype=bool)
        kinds[value][telling[value]] = True
    return kinds
