"""The filters of `fairtrial show` for trials, as given on the command line."""

from __future__ import annotations

from typing import NamedTuple


class Filters(NamedTuple):
    """Which trials to show, and how many; scores are 0–100. Nothing is imported, so that `--help` stays quick."""

    wrong: bool = False
    trials: bool = False
    arms: tuple[str, ...] = ()
    case_ids: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    difficulty: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    below: float | None = None
    above: float | None = None
    failed: bool = False
    unscored: bool = False
    failures: bool = False
    limit: int | None = None
    full: bool = False

    @property
    def lists_trials(self) -> bool:
        """Return whether trials are asked for, by name or by any filter."""
        return any(self[:-2]) or self.below is not None or self.above is not None
