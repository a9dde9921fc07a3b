"""Scores over time: lines with dates, and the small ones beside a name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from fairtrial.charts.axis import Axis, linear_axis
from fairtrial.charts.marks import Interval, Tone, drawing
from fairtrial.charts.svg import dot, label, line, link, percent, tag, words

_HEIGHT = 270


class Curve(NamedTuple):
    """One arm over time: (seconds since 1970, score, interval, address of its run)."""

    name: str
    points: Sequence[tuple[float, float, Interval | None, str]]
    tone: Tone = ""


def curves(lines: Sequence[Curve], *, within: tuple[float, float] | None = (0.0, 100.0)) -> str:
    """Return scores by date, with their intervals."""
    times = [at for one in lines for at, *_ in one.points]
    first, last = min(times), max(times)
    if first == last:
        first, last = first - 43200, last + 43200
    ends = [end for one in lines for _, value, ci, _ in one.points for end in (*(ci or ()), value)]
    y_axis = linear_axis(ends, within=within, least=10 if within else 0)
    dates = Axis(first, last, tuple(first + (last - first) * n / 4 for n in range(5)))
    parts = []
    for tick in y_axis.ticks:
        y = percent(100 - y_axis.at(tick))
        parts.append(tag("line", class_="g", x1="0%", x2="100%", y1=y, y2=y))
        parts.append(tag("text", y_axis.words(tick), x="0%", y=y, dx="-10", dy="4", text_anchor="end"))
    for number, tick in enumerate(dates.ticks):
        anchor = "start" if number == 0 else "end" if number == 4 else "middle"
        parts.append(label(dates.at(tick), _HEIGHT + 18, _day(tick, last - first), anchor=anchor))
    for one in lines:
        parts += _curve(one, dates, y_axis)
    says = "; ".join(f"{one.name}: {one.points[-1][1]:.1f} at the end" for one in lines[:20])
    names = tag(
        "p",
        *(tag("span", tag("i", class_=f"sw {one.tone or 'k'}"), words(one.name)) for one in lines),
        class_="keyline",
    )
    return tag("div", drawing(_HEIGHT, *parts, says=says, interactive=True), class_="plotbox chart over") + names


def _curve(one: Curve, dates: Axis, y_axis: Axis) -> list[str]:
    drawn = []
    ordered = sorted(one.points)
    for (t1, v1, *_), (t2, v2, *_) in pairwise(ordered):
        y1, y2 = (percent(100 - y_axis.at(value)) for value in (v1, v2))
        drawn.append(
            tag(
                "line",
                class_=f"cv {one.tone}".strip(),
                x1=percent(dates.at(t1)),
                x2=percent(dates.at(t2)),
                y1=y1,
                y2=y2,
            )
        )
    for at, value, ci, href in ordered:
        x = dates.at(at)
        parts = []
        if ci is not None:
            low, high = (percent(100 - y_axis.at(end)) for end in ci)
            parts.append(line(x, x, low, high, f"iv thin {one.tone}".strip()))
        parts.append(dot(x, percent(100 - y_axis.at(value)), 4.5, f"pt {one.tone}".strip()))
        bounds = "" if ci is None else f" (95 % CI {ci[0]:.1f} to {ci[1]:.1f})"
        drawn.append(link(href, *parts, tip=f"{one.name}|{value:.1f}{bounds}|{_day(at, 0)}"))
    return drawn


def _day(seconds: float, span: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%d %b %H:%M" if span < 3 * 86400 else "%d %b %Y").lstrip("0")


def sparkline(values: Sequence[float]) -> str:
    """Return the last values as a small line, the newest with a dot."""
    if len(values) < 2:
        return ""
    axis = linear_axis(values, least=5)
    step = 94 / (len(values) - 1)
    ys = [percent(12 + 0.76 * (100 - axis.at(value))) for value in values]
    parts = [
        tag("line", class_="cv lead", x1=percent(3 + step * n), x2=percent(3 + step * (n + 1)), y1=ys[n], y2=ys[n + 1])
        for n in range(len(values) - 1)
    ]
    end = dot(97, ys[-1], 3, "pt lead")
    shown = ", ".join(f"{value:.0f}" for value in values)
    return drawing(28, *parts, end, says=f"the last {len(values)} runs: {shown}", kind="spark")
