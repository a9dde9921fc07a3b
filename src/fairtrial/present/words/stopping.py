"""What stopping early, planned looks and looking again mean for a run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.formatting import money
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.summary import RunSummary
    from fairtrial.core.settings import LookAgain

_MIDPOINTS = (
    "The intervals are valid whenever it stopped, and wider for it; scores and differences are their midpoints, so "
    "that a difference need not be that of the two scores."
)


def stop_notes(summary: RunSummary) -> list[str]:
    """Say what was not run, and what it means that the run could stop, or that it was looked at before."""
    return [*_early_notes(summary), *([_again_words(summary.again)] if summary.again else [])]


def _early_notes(summary: RunSummary) -> list[str]:
    waiting = sum(arm.waiting for arm in summary.arms)
    unsaid = waiting if summary.asked is None and summary.status != "stopped" else 0
    notes = [f"{unsaid:,} {'trial has' if unsaid == 1 else 'trials have'} not been run."] if unsaid else []
    if summary.stop is not None and summary.stop.looks:
        return [*notes, *_saved_notes(summary), *_race_notes(summary), looks_words(summary.stop.looks)]
    if summary.status == "stopped":
        return [
            f"Stopped as soon as it was sure, {counted(waiting, 'trial')} early; calls in progress were finished. "
            f"{_MIDPOINTS} "
            "Among runs that stop early, differences are still too large on average.",
        ]
    return [*notes, f"This run could have stopped early. {_MIDPOINTS}"] if summary.stop is not None else notes


def _saved_notes(summary: RunSummary) -> list[str]:
    """Say what stopping early saved."""
    if summary.saved is None or not summary.saved.trials:
        return []
    saved = summary.saved
    usd = f", about {money(saved.usd)}" if saved.usd else ""
    return [f"Not needed: {saved.trials:,} of {saved.of:,} trials ({100 * saved.trials / saved.of:.0f} %{usd})."]


def _race_notes(summary: RunSummary) -> list[str]:
    """Say which arms left a race, and when."""
    left: dict[int, list[str]] = {}
    for arm in summary.arms:
        if arm.left is not None:
            left.setdefault(arm.left, []).append(arm.arm)
    said = [f"{', '.join(names)} at look {look}" for look, names in sorted(left.items())]
    return [f"Left the race: {'; '.join(said)}."] if said else []


def _again_words(again: LookAgain) -> str:
    """Say that a run extends one that was looked at."""
    return (
        f"Look {again.look}: run {again.number} has the same arms on {again.cases:,} of these cases and was looked at. "
        "All such looks together err in 5 % at most, so intervals are wider than those of a first look."
    )


def looks_words(planned: int) -> str:
    """Say that intervals allow for planned looks."""
    return f"{planned} looks were planned: intervals and p hold for all of them together."
