"""Which rows of a dataset become cases: `where`, then `offset` and `limit`, then `sample`."""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from fairtrial.config.document import DatasetEntry
from fairtrial.core.ids import canonical_json
from fairtrial.tables import Row

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d{1,2}")  # 1,5 in many languages; 1,500 could be either
_BOUNDS = ("min", "max", "not")


class Numbered(NamedTuple):
    """A row of a dataset, with its file and its number among all rows."""

    number: int  # from 0, over all files
    file: str
    row: Row


def as_number(value: Any) -> float | None:
    """Return a cell as a finite number, if it is one."""
    if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(",", ".")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


class RowSelection:
    """The selected rows of a dataset. Rows that cannot be read are never left out."""

    def __init__(self, entry: DatasetEntry) -> None:
        self._entry = entry
        self._conditions = [(column, _condition(wanted)) for column, wanted in entry.where.items()]
        self._last: tuple[bytes, int] | None = None  # the last row of the sample, found when first needed

    def identity(self) -> dict[str, Any]:
        """Return what the selection depends on; empty if all rows are selected."""
        entry = self._entry
        chosen = {"where": entry.where, "offset": entry.offset, "limit": entry.limit, "sample": entry.sample}
        if entry.sample is not None:
            chosen["seed"] = entry.seed
        return {name: value for name, value in chosen.items() if value}

    def rows(self, read: Callable[[], Iterator[Numbered]]) -> Iterator[Numbered]:
        """Yield the selected rows in their order; a sample reads all rows once more, the first time."""
        if self._entry.sample is None:
            yield from self._sliced(read())
            return
        if self._last is None:
            self._last = self._find_last(self._sliced(read()))
        for item in self._sliced(read()):
            if item.row.problem or self._draw(item) <= self._last:
                yield item

    def _find_last(self, items: Iterable[Numbered]) -> tuple[bytes, int]:
        """Return the last draw of the sample: a row is in the sample if its draw is among the smallest."""
        assert self._entry.sample is not None
        draws = (self._draw(item) for item in items if not item.row.problem)
        return max(heapq.nsmallest(self._entry.sample, draws), default=(b"", 0))

    def _draw(self, item: Numbered) -> tuple[bytes, int]:
        """Return a row's place in a random order that depends on nothing but the seed and the row itself.

        A row that has an id is drawn by it, and keeps its place when its text is corrected.
        """
        fields = item.row.fields
        key = fields.get(self._entry.id or "id")
        content = canonical_json([self._entry.seed, fields if key in (None, "") else str(key)])
        return hashlib.blake2b(content, digest_size=16).digest(), item.number

    def _sliced(self, items: Iterator[Numbered]) -> Iterator[Numbered]:
        first = self._entry.offset
        last = None if self._entry.limit is None else first + self._entry.limit
        return islice(self._matching(items), first, last)

    def _matching(self, items: Iterator[Numbered]) -> Iterator[Numbered]:
        if not self._conditions:
            yield from items
            return
        unseen = dict(self._conditions)
        count = matched = 0
        item = None
        for item in items:
            if item.row.problem:
                yield item
                continue
            count += 1
            if unseen:
                for column in [column for column in unseen if column in item.row.fields]:
                    del unseen[column]
            outcome = self._matches(item.row.fields)
            if isinstance(outcome, str):
                matched += 1
                yield item._replace(row=Row(item.row.line, {}, outcome))
            elif outcome:
                matched += 1
                yield item
        problem = _where_problem(list(unseen), count, matched, item)
        if problem and item is not None:
            yield item._replace(row=Row(0, {}, problem))

    def _matches(self, fields: dict[str, Any]) -> bool | str:
        """Return whether a row meets every condition, or why that is unknown."""
        for column, condition in self._conditions:
            try:
                if not condition(fields.get(column)):
                    return False
            except ValueError as error:
                return f"`where`: column `{column}` {error}"
        return True


def _where_problem(unseen: list[str], count: int, matched: int, last: Numbered | None) -> str:
    if unseen and last is not None and not last.row.problem:
        known = ", ".join(map(str, last.row.fields))
        return f"`where`: no column `{unseen[0]}` (columns: {known})"
    if count and not matched:
        return f"`where` selects none of the {count} rows"
    return ""


def where_problems(where: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (column, problem) of conditions that make no sense."""
    for column, wanted in where.items():
        if not isinstance(wanted, dict):
            continue
        unknown = [key for key in wanted if key not in _BOUNDS]
        if unknown or not wanted:
            yield column, f"a condition is a value, a list of values, or a mapping with {', '.join(_BOUNDS)}"
            continue
        for key in ("min", "max"):
            bound = wanted.get(key)
            if bound is not None and as_number(bound) is None and not _is_date(bound):
                yield column, f"`{key}` must be a number or a date such as 2026-01-31, not {bound!r}"


def _condition(wanted: Any) -> Callable[[Any], bool]:
    """Return the test of a cell that a condition stands for."""
    if not isinstance(wanted, dict):
        values = wanted if isinstance(wanted, list) else [wanted]
        return lambda cell: any(_same(cell, value) for value in values)
    tests: list[Callable[[Any], bool]] = []
    if "not" in wanted:
        excluded = _condition(wanted["not"])
        tests.append(lambda cell: not excluded(cell))
    if wanted.get("min") is not None:
        tests.append(lambda cell: _at_least(cell, wanted["min"]))
    if wanted.get("max") is not None:
        tests.append(lambda cell: _at_least(cell, wanted["max"], upwards=False))
    return lambda cell: all(test(cell) for test in tests)


def _same(cell: Any, value: Any) -> bool:
    """Return whether a cell has a value: as text, or as a number."""
    if isinstance(cell, list):
        return any(_same(item, value) for item in cell)
    if value is None or cell is None:
        return (value is None or value == "") and (cell is None or cell == "")
    if isinstance(cell, bool) or _truth(value) in ("true", "false"):
        return _truth(cell) == _truth(value)
    if isinstance(cell, str) and isinstance(value, str):
        return cell.strip() == value.strip()
    number = as_number(cell)
    return number is not None and number == as_number(value)


def _truth(value: Any) -> str:
    """Return `True`, `TRUE` and the like in one spelling."""
    return str(value).strip().lower()


def _at_least(cell: Any, bound: Any, *, upwards: bool = True) -> bool:
    if cell is None or cell == "":
        return False
    if as_number(bound) is None:
        if not _is_date(cell):
            raise ValueError(f"is not a date such as 2026-01-31: {cell!r}")
        return bool(cell >= bound if upwards else cell[: len(bound)] <= bound)
    number, limit = as_number(cell), as_number(bound)
    if number is None or limit is None:
        raise ValueError(f"is not a number: {cell!r}")
    return number >= limit if upwards else number <= limit


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.match(value) is not None
