"""Numbers of a comparison as text: scores in points, metrics on their own scale, and never on the wrong side of 0."""

from __future__ import annotations


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
        """Format an interval of differences, with enough digits to show on which side of 0 and of the margin its limits
        lie."""
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
    """Format an interval as in a table: `79.7 to 87.6`, with the digits that show on which side of 0 a limit lies."""
    return Scale(metric).words(bounds, margin)


def signs(text: str) -> str:
    """Write a minus sign as typographers do."""
    return text.replace("-", "−")
