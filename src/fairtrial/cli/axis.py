"""An axis of characters, and intervals drawn on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.text import Text

from fairtrial.cli.layout import HEAD, QUIET, Column
from fairtrial.core.formatting import signs

MIN_WIDTH = 16  # a narrower bar would be bent by rounding
_EIGHTHS = " ▏▎▍▌▋▊▉"


class TextAxis:
    """Numbers from left to right, over this many characters; the ends are round numbers."""

    def __init__(
        self,
        values: Iterable[float],
        width: int,
        *,
        within: tuple[float, float] = (-math.inf, math.inf),
        zero: bool = False,
    ) -> None:
        self.width, self._zero = width, zero
        values = [*values, 0.0] if zero else list(values)
        low, high = min(values, default=0.0), max(values, default=1.0)
        if high - low < 1e-12:
            low, high = low - (abs(low) or 1.0) / 10, high + (abs(high) or 1.0) / 10
        self._step = _step(low, high, width)
        self._low = max(within[0], self._step * math.floor(low / self._step + 1e-9))
        self._high = min(within[1], self._step * math.ceil(high / self._step - 1e-9))

    def column(self, value: float) -> int:
        """Return the place of a number; numbers beyond the ends are at the ends."""
        share = (value - self._low) / (self._high - self._low)
        return min(self.width - 1, max(0, round(share * (self.width - 1))))

    @property
    def ticks(self) -> list[float]:
        """The round numbers on the axis."""
        first = math.ceil(self._low / self._step - 1e-9)
        last = math.floor(self._high / self._step + 1e-9)
        return [number * self._step for number in range(first, last + 1)]

    def head(self) -> Text:
        """Return the numbers above the axis, each where it belongs."""
        line = [" "] * self.width
        end = -1
        for tick in self.ticks:
            label = self._label(tick)
            start = min(max(0, self.column(tick) - len(label) // 2), self.width - len(label))
            if start > end:
                line[start : start + len(label)] = label
                end = start + len(label)
        return Text("".join(line), HEAD)

    def _label(self, tick: float) -> str:
        digits = max(0, -math.floor(math.log10(self._step) + 1e-9))
        plus = "+" if self._zero and tick > 0 else ""
        return f"{plus}{signs(f'{tick + 0.0:.{digits}f}')}"

    def bar(self, value: float | None, bounds: tuple[float, float] | None, style: str = "") -> Text:
        """Return an interval with a dot at the value: `·   ━━●━━  ·`."""
        line = [" "] * self.width
        if not self._zero:
            for tick in self.ticks:
                line[self.column(tick)] = "·"
        else:
            line[self.column(0.0)] = "│"
        drawn = range(0)
        if bounds is not None:
            drawn = range(self.column(bounds[0]), self.column(bounds[1]) + 1)
            line[drawn.start : drawn.stop] = "━" * len(drawn)
        if value is not None:
            line[self.column(value)] = "●"
            drawn = drawn or range(self.column(value), self.column(value) + 1)
        text = Text("".join(line), QUIET)
        if drawn and (style or drawn):
            text = Text.assemble(
                ("".join(line[: drawn.start]), QUIET),
                ("".join(line[drawn.start : drawn.stop]), style),
                ("".join(line[drawn.stop :]), QUIET),
            )
        return text


Interval = tuple[float | None, tuple[float, float] | None]  # a value and its bounds, as far as they are known


def scaled(value: float | None, bounds: tuple[float, float] | None, factor: int) -> Interval:
    """Return an interval in the units of an axis: points for scores, 0–1."""
    ends = None if bounds is None else (factor * bounds[0], factor * bounds[1])
    return None if value is None else factor * value, ends


def drawn(
    rows: Sequence[Interval], width: int, styles: Iterable[str], *, within: tuple[float, float] | None = None,
    zero: bool = False,
) -> Column:  # fmt: skip
    """Return a column with these intervals on one axis."""
    ends = [end for value, bounds in rows for end in (value, *(bounds or ())) if end is not None]
    axis = TextAxis(ends or within or (), width, within=within or (-math.inf, math.inf), zero=zero)
    bars = [axis.bar(value, bounds, style) for (value, bounds), style in zip(rows, styles, strict=True)]
    return Column(axis.head(), bars)


def _step(low: float, high: float, width: int) -> float:
    """Return the smallest round step (1, 2 or 5 times a power of ten) whose numbers fit above an axis."""
    span = high - low
    exponent = math.floor(math.log10(span)) - 2
    for power in range(exponent, exponent + 5):
        for factor in (1, 2, 5):
            step = factor * 10.0**power
            longest = max(len(f"{abs(end):.{max(0, -power)}f}") for end in (low, high)) + (low < 0)
            if span / step * (longest + 2) <= width:
                return step
    return 10.0 ** (exponent + 5)


def filled(share: float, width: int) -> str:
    """Return a bar that is filled to a share, in eighths of a character: `███▌░░░░`."""
    eighths = min(8 * width, max(0, int(share * 8 * width + 1e-9)))
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (_EIGHTHS[rest] if rest else "")
    return bar + "░" * (width - len(bar))


def split(counts: Sequence[int], marks: str, width: int) -> str:
    """Return a bar divided in proportion to counts; every count above 0 has at least one character."""
    total = sum(counts) or 1
    sizes = [max(1, round(width * count / total)) if count else 0 for count in counts]
    while sum(sizes) > width:
        sizes[sizes.index(max(sizes))] -= 1
    while 0 < sum(sizes) < width:
        sizes[sizes.index(max(sizes))] += 1
    return "".join(mark * size for mark, size in zip(marks, sizes, strict=True))
