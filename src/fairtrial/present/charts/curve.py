"""Scores over time: lines with dates, and the small ones next to a name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from fairtrial.present.charts.axis import Axis, linear_axis
from fairtrial.present.charts.marks import Interval, Tone, drawing, ends_of, rules, upright
from fairtrial.present.charts.svg import dot, label, line, link, percent, tag, words

_HEIGHT, _SMALL = 270, 110
_SHIFT = 0.6  # percent of the width between lines that have points of the same time
_LINE, _NAME = 16, 20  # height of a name in pixels, and its letters


class Curve(NamedTuple):
    """One arm over time: (seconds since 1970, score, interval, address of its run)."""

    name: str
    points: Sequence[tuple[float, float, Interval | None, str]]
    tone: Tone = ""


def curves(lines: Sequence[Curve], *, within: tuple[float, float] | None = (0.0, 100.0)) -> str:
    """Return scores by date with their intervals, each line named at its end."""
    dates, y_axis = _axes(lines, within)
    parts = [rules(y_axis), _dates(dates, _HEIGHT + 18)]
    for number, one in enumerate(lines):
        parts += _curve(one, dates, y_axis, shift=_SHIFT * (number - (len(lines) - 1) / 2))
    parts += [
        label(
            100, percent(y), f"{_short(one.name)} {last:.1f}", anchor="start", kind=f"lab end {one.tone}".strip(), dx=14
        )
        for one, y, last in _named(lines, y_axis)
    ]
    names = tag(
        "p",
        *(tag("span", tag("i", class_=f"sw {one.tone or 'k'}"), words(one.name)) for one in lines),
        class_="keyline",
    )
    plot = drawing(_HEIGHT, *parts, says=_spoken(lines), interactive=True)
    return tag("div", plot, class_="plotbox chart over") + names


def small_curves(lines: Sequence[Curve], *, within: tuple[float, float] | None = (0.0, 100.0)) -> str:
    """Return a small chart per line, all with the same axes: for more lines than one chart can hold."""
    dates, y_axis = _axes(lines, within)
    ends = Axis(dates.low, dates.high, (dates.ticks[0], dates.ticks[-1]))
    drawn = []
    for one in lines:
        parts = [rules(y_axis), _dates(ends, _SMALL + 16), *_curve(one, dates, y_axis)]
        plot = drawing(_SMALL, *parts, says=_spoken([one]), interactive=True)
        drawn.append(tag("figure", tag("figcaption", words(one.name)), tag("div", plot, class_="plotbox over small")))
    return tag("div", *drawn, class_="multiples")


def _axes(lines: Sequence[Curve], within: tuple[float, float] | None) -> tuple[Axis, Axis]:
    times = [at for one in lines for at, *_ in one.points]
    first, last = min(times), max(times)
    if first == last:
        first, last = first - 43200, last + 43200
    room = 0.03 * (last - first)
    first, last = first - room, last + room
    values = ends_of((value, ci) for one in lines for _, value, ci, _ in one.points)
    y_axis = linear_axis(values, within=within, least=10 if within else 0)
    return Axis(first, last, tuple(first + (last - first) * n / 4 for n in range(5))), y_axis


def _dates(dates: Axis, y: int) -> str:
    """Return the dates below the plot, each once."""
    shown: dict[str, str] = {}
    last = len(dates.ticks) - 1
    for number, tick in enumerate(dates.ticks):
        text = _day(tick, dates.high - dates.low)
        anchor = "start" if number == 0 else "end" if number == last else "middle"
        kind = "minor" if number % 2 else None
        shown.setdefault(text, label(dates.at(tick), y, text, anchor=anchor, kind=kind))
    return "".join(shown.values())


def _named(lines: Sequence[Curve], y_axis: Axis) -> list[tuple[Curve, float, float]]:
    """Return each line with the height of its name and its last value; names that would overlap are moved apart."""
    lasts = [(one, max(one.points)[1]) for one in lines]
    placed: list[tuple[Curve, float, float]] = []
    gap = 100 * _LINE / _HEIGHT
    for one, last in sorted(lasts, key=lambda item: -item[1]):
        y = 100 - y_axis.at(last) + 100 * 4 / _HEIGHT
        placed.append((one, max(y, placed[-1][1] + gap) if placed else y, last))
    over = max(0.0, placed[-1][1] - 100) if placed else 0.0
    return [(one, y - over, last) for one, y, last in placed]


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _spoken(lines: Sequence[Curve]) -> str:
    return "; ".join(f"{one.name}: {max(one.points)[1]:.1f} at the end" for one in lines[:20])


def _curve(one: Curve, dates: Axis, y_axis: Axis, *, shift: float = 0.0) -> list[str]:
    """Return a line with its points; `shift` keeps the intervals of points of one time apart."""
    drawn = []
    ordered = sorted(one.points)
    for (t1, v1, *_), (t2, v2, *_) in pairwise(ordered):
        y1, y2 = (percent(100 - y_axis.at(value)) for value in (v1, v2))
        drawn.append(line(dates.at(t1) + shift, dates.at(t2) + shift, y1, y2, f"cv {one.tone}".strip()))
    for at, value, ci, href in ordered:
        mark = upright(y_axis, dates.at(at) + shift, value, ci, r=4.5, tone=one.tone)
        bounds = "" if ci is None else f" (95 % CI {ci[0]:.1f} to {ci[1]:.1f})"
        moment = datetime.fromtimestamp(at, UTC).strftime("%d %b %Y, %H:%M UTC").lstrip("0")
        name = one.name.replace("|", "/")
        drawn.append(link(href, mark, tip=f"{name}|{value:.1f}{bounds}|{moment}"))
    return drawn


def _day(seconds: float, span: float) -> str:
    """Format a date with what tells it from the others on an axis of that length."""
    moment = datetime.fromtimestamp(seconds, UTC)
    days = span / 86400
    form = "%H:%M:%S" if days < 0.01 else "%H:%M" if days < 1 else "%d %b %H:%M" if days < 3 else "%d %b"
    return moment.strftime(form if days < 300 else "%b %Y").lstrip("0" if days >= 1 else "")


def sparkline(values: Sequence[float]) -> str:
    """Return the last values as a small line, the newest with a dot."""
    if len(values) < 2:
        return ""
    axis = linear_axis(values, least=5)
    step = 94 / (len(values) - 1)
    ys = [percent(12 + 0.76 * (100 - axis.at(value))) for value in values]
    parts = [line(3 + step * n, 3 + step * (n + 1), *pair, "cv lead") for n, pair in enumerate(pairwise(ys))]
    end = dot(97, ys[-1], 3, "pt lead")
    shown = ", ".join(f"{value:.0f}" for value in values)
    return drawing(28, *parts, end, says=f"the last {len(values)} runs: {shown}", kind="spark")
