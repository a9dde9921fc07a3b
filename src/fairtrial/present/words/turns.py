"""What checks after the turns of a conversation said, in words for every surface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairtrial.core.formatting import number


class CheckedTurn(NamedTuple):
    """One check: after which turn, by which scorer, its result, and why."""

    name: str
    scorer: str
    result: str  # of 100, or why there is none
    notes: str
    passed: bool | None  # None: there is no result

    @property
    def words(self) -> str:
        """All of it on one line."""
        notes = f": {self.notes}" if self.notes else ""
        return f"{self.name} ({self.scorer}) {self.result}{notes}"


def checked_turns(details: Mapping[str, Any] | None) -> list[CheckedTurn]:
    """Return the checks in the details of a score, in the order of the turns."""
    found = (details or {}).get("turns")
    return [_read(entry) for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def _read(entry: Mapping[str, Any]) -> CheckedTurn:
    name, scorer, value = str(entry.get("name")), str(entry.get("scorer")), entry.get("value")
    if isinstance(value, int | float):
        weight = entry.get("weight")
        uncounted = ", not counted" if weight == 0 else ""
        result = f"{number(value).removesuffix('.0')} of 100{uncounted}"
        return CheckedTurn(name, scorer, result, str(entry.get("notes") or ""), value >= 1)
    if "not_reached" in entry:
        return CheckedTurn(name, scorer, "not reached", str(entry["not_reached"]), None)
    return CheckedTurn(name, scorer, "no score", str(entry.get("unscored") or ""), None)
