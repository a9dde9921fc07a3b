"""Scores, amounts and durations as text; light to import, because a run that begins shows them too."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from fairtrial.core.money import Cost


def number(value: float | None, digits: int = 1) -> str:
    """Format a score of 0–1 as 0–100."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


def plus_minus(mean: float | None, ci95: tuple[float, float] | None, show: Callable[[float], str] = number) -> str:
    """Format a mean as `85.2 ± 3.1`: ± is half the width of its 95 % interval, here and everywhere."""
    shown = "–" if mean is None else show(mean)
    return shown if mean is None or ci95 is None else f"{shown} ± {show((ci95[1] - ci95[0]) / 2)}"


PLUS_MINUS = "± is half of the 95 % interval; where it reaches further on one side, go by its limits."


def deviation(value: float, show: Callable[[float], str] = number) -> str:
    """Format a standard deviation: `sd 20.5`."""
    return f"sd {show(value)}"


def with_deviation(mean: float, value: float | None, show: Callable[[float], str] = number) -> str:
    """Format a mean with its standard deviation: `62.5 (sd 20.5)`; without one if there is none."""
    return show(mean) if value is None else f"{show(mean)} ({deviation(value, show)})"


def money(value: Cost | float | None) -> str:
    """Format USD with enough digits to show small amounts; "≥" where the cost of some calls is unknown."""
    if isinstance(value, Cost):
        shown = money(value.known or None if value.unknown else value.known)
        return f"≥ {shown}" if value.unknown and value.known else shown
    if value is None:
        return "unknown"
    if value >= 1e9:  # not a real bill: whoever reported it miscounted
        return f"${value:.2g}"
    if value >= 1 or value == 0:
        return f"${value:.2f}" if value else "0"
    return f"${Decimal(f'{value:.2g}'):f}"  # never with an exponent


def cost_fact(cost: Cost) -> str:
    """Format a cost among other facts, where "unknown" alone would not say what."""
    shown = money(cost)
    return "cost unknown" if shown == "unknown" else shown


def milliseconds(value: float | None) -> str:
    """Format a duration."""
    if value is None:
        return "–"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"
