"""Giving up on somebody who is not there: many failures in a row of one target or judge."""

from __future__ import annotations

_FAILURES = 20  # in a row, and more than are under way at once


class Patience:
    """Counts failures in a row, by name."""

    def __init__(self, concurrency: int) -> None:
        self._most = max(_FAILURES, 2 * concurrency)
        self._in_a_row: dict[str, int] = {}

    def succeeded(self, name: str) -> None:
        """The count starts again."""
        self._in_a_row[name] = 0

    def failed(self, name: str) -> bool:
        """Count one more failure in a row; whether that is one too many."""
        self._in_a_row[name] = self.count(name) + 1
        return self._in_a_row[name] >= self._most

    def count(self, name: str) -> int:
        """How many failures in a row there are."""
        return self._in_a_row.get(name, 0)
