"""How numbers are written, everywhere: scores, differences, intervals, amounts of money, durations, dates.

Scores are in points of 100, metrics on their own scale, and no limit of an interval is shown on the wrong side of 0.
"""

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


def span(seconds: float | None) -> str:
    """Format a duration as display say it: `42 s`, `6 min 12 s`, `2 h`."""
    if seconds is None or seconds < -1:  # a clock was set meanwhile: nobody knows
        return "–"
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (0 if hours else rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


class Scale:
    """Number format of a comparison: scores in points out of 100, metrics on their own scale."""

    def __init__(self, metric: str) -> None:
        self.factor, self.digits = (1, 3) if metric else (100, 1)
        self.unit = f" in {metric}" if metric else " points"

    def plain(self, value: float | None) -> str:
        """Format a number without a leading plus sign."""
        return "–" if value is None else self._format(value, "")

    def signed(self, value: float | None) -> str:
        """Format a difference with its sign."""
        return "–" if value is None else self._format(value, "+").replace("-", "−")

    def interval(self, bounds: tuple[float, float] | None, margin: float | None = None) -> str:
        """Format an interval of differences, with enough digits to show on which side of 0 and of the margin its
        limits are."""
        if bounds is None:
            return "–"
        thresholds = (0.0,) if margin is None else (0.0, margin, -margin)
        return f"[{', '.join(self._format(bound, '+', thresholds) for bound in bounds)}]"

    def words(self, bounds: tuple[float, float] | None, margin: float | None = None) -> str:
        """Format the same interval in words: `5.3 to 15.4`."""
        low, _, high = self.interval(bounds, margin)[1:-1].partition(", ")
        return "–" if bounds is None else f"{low} to {high}".replace("+", "").replace("-", "−")

    def _format(self, value: float, sign: str, thresholds: tuple[float, ...] = ()) -> str:
        exact = self.factor * value
        digits = next(
            (n for n in range(self.digits, 9) if _same_side(round(exact, n), exact, thresholds, self.factor)), 9
        )
        rounded = round(exact, digits) + 0.0  # no −0.0
        return f"{rounded:{sign}.3g}" if abs(rounded) >= 1e6 else f"{rounded:{sign}.{digits}f}"


def _same_side(shown: float, exact: float, thresholds: tuple[float, ...], factor: int) -> bool:
    return all((shown > factor * threshold) == (exact > factor * threshold) for threshold in thresholds) and all(
        (shown < factor * threshold) == (exact < factor * threshold) for threshold in thresholds
    )


def interval_words(bounds: tuple[float, float], metric: str = "", margin: float | None = None) -> str:
    """Format an interval as in a table: `79.7 to 87.6`, with the digits that show on which side of 0 a limit is."""
    return Scale(metric).words(bounds, margin)


def signs(text: str) -> str:
    """Write a minus sign as typographers do."""
    return text.replace("-", "−")
