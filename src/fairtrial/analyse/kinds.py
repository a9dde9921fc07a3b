"""Kinds of cases: the categories, difficulties and tags that divide the cases of a comparison."""

from __future__ import annotations

import numpy as np

from fairtrial.analyse.case_table import CaseTable, Chosen, Ints

_MOST_KINDS = 30  # the largest kinds of one attribute; more would not be read, and small kinds show nothing
_FEWEST_CASES = 3
LEVELS = ("easy", "medium", "hard")


def difficulties_of(cases: CaseTable, rows: Ints) -> dict[str, Chosen]:
    """Return every difficulty that some of the rows have and others do not, also those with too few for an interval."""
    return cases.attributes["difficulty"].among(rows, len(cases), fewest=1, most=_MOST_KINDS)


def kinds_of(cases: CaseTable, rows: Ints) -> dict[str, dict[str, Chosen]]:
    """Return {attribute: {value: mask of these rows}} for values that some of the cases have and others do not."""
    kinds_by = {
        by: attribute.among(rows, len(cases), fewest=_FEWEST_CASES, most=_MOST_KINDS)
        for by, attribute in cases.attributes.items()
    }
    for by in ("category", "difficulty"):  # drop tags that only repeat a category or difficulty
        for which in kinds_by[by].values():
            kinds_by["tag"] = {tag: own for tag, own in kinds_by["tag"].items() if not np.array_equal(own, which)}
    return {by: kinds for by, kinds in kinds_by.items() if kinds}


def in_order(kind: str) -> tuple[int, float, str]:
    """Sort difficulties as they rise, sizes as numbers, and anything else by name."""
    digits = "".join(letter for letter in kind if letter.isdigit())
    level = LEVELS.index(kind) if kind in LEVELS else len(LEVELS)
    return level, float(digits) if kind == f"n{digits}" else 0.0, kind
