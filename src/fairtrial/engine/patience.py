"""Give up on a target or judge after many failures in a row."""

from __future__ import annotations

_FAILURES = 20  # in a row; always more than the number of calls in flight
_GONE = 3  # in a row that say that there is no such model: one may be a slip of the server


class Patience:
    """Counts consecutive failures by name."""

    def __init__(self, concurrency: int) -> None:
        self._max_failures = max(_FAILURES, 2 * concurrency)
        self._in_a_row: dict[str, int] = {}
        self._gone: dict[str, int] = {}

    def succeeded(self, name: str) -> None:
        """Reset the count."""
        self._in_a_row[name] = self._gone[name] = 0

    def failed(self, name: str, *, gone: bool = False) -> bool:
        """Count another failure in a row, `gone` if its model does not exist; return whether that is too many."""
        self._in_a_row[name] = self.count(name) + 1
        self._gone[name] = self._gone.get(name, 0) + gone
        return self._in_a_row[name] >= self._max_failures or self._gone[name] >= _GONE

    def count(self, name: str) -> int:
        """Return the number of failures in a row."""
        return self._in_a_row.get(name, 0)
