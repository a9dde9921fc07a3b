"""Scores, amounts and durations as text; light to import, because a run that begins shows them too."""

from __future__ import annotations

from decimal import Decimal

from fairtrial.core.money import Cost


def number(value: float | None, digits: int = 1) -> str:
    """Format a score of 0–1 as 0–100."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


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


def milliseconds(value: float | None) -> str:
    """Format a duration."""
    if value is None:
        return "–"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"
