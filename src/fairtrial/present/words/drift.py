"""Drift in words, and as the rows of a table."""

from __future__ import annotations

from fairtrial.analyse.drift import ArmDrift, Drift, DriftPoint
from fairtrial.core.formatting import Scale
from fairtrial.text.printable import counted


def drift_line(arm: ArmDrift) -> str:
    """Say whether an arm drifts."""
    alarm = arm.alarm
    if alarm is None:
        later, first = counted(len(arm.points), "run"), arm.reference
        return f"{arm.arm} is stable: {later} after the first {len(first)} ({first[0]} to {first[-1]})"
    word = "worse" if alarm.smoothed < 0 else "better"
    smoothed, limit = _smoothed_and_limit(alarm)
    return (
        f"{arm.arm} has drifted: {word} since {alarm.run} ({smoothed} points, smoothed; up to {limit} either way is "
        "chance)"
    )


def chart_cells(point: DriftPoint) -> list[str]:
    """Return one run as a table row, in the order in which `drift` shows it."""
    smoothed, limit = _smoothed_and_limit(point)
    return [point.run, Scale("").signed(point.difference), smoothed, limit, "alarm" if point.alarm else ""]


def _smoothed_and_limit(point: DriftPoint) -> tuple[str, str]:
    """Format both in points, with enough digits that they never contradict the decision."""
    smoothed, limit = 100 * point.smoothed, 100 * point.limit
    digits = next((n for n in range(1, 9) if (round(abs(smoothed), n) > round(limit, n)) == point.alarm), 9)
    return f"{round(smoothed, digits) + 0.0:+.{digits}f}".replace("-", "−"), f"{limit:.{digits}f}"


def rate_line(found: Drift) -> str:
    """Say how often there is an alarm although nothing changed."""
    return (
        f"Without any change, {100 * found.false_alarms:g} % of such charts have an alarm within "
        f"{found.within_runs} runs, for each arm."
    )
