"""Bars: differences case by case, who is ahead on how many, and shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.present.charts.axis import Axis, linear_axis
from fairtrial.present.charts.marks import Interval, drawing, key_line, mark_table, rule
from fairtrial.present.charts.svg import label, line, named, percent, rect, tag, words
from fairtrial.text.printable import counted

_HEIGHT = 230


def histogram(
    counts: Sequence[int],
    *,
    mean: float | None,
    ci: Interval | None,
    a: str,
    b: str,
    scale: float = 100.0,
    lower_is_better: bool = False,
) -> str:
    """Return how many cases differ by how much, from −scale to +scale in equal steps.

    Cases that do not differ are not among the counts: their bar would hide the rest.
    """
    bins, width = len(counts), 2 * scale / len(counts)
    y_axis = linear_axis([0, *counts], most=4)
    top = max(y_axis.high, 1.0)
    x_axis = linear_axis((-scale, scale), most=9)
    x_axis = Axis(-scale, scale, tuple(tick for tick in x_axis.ticks if -scale <= tick <= scale))
    parts = [rule(100 * tick / top, f"{tick:g}") for tick in y_axis.ticks if tick == int(tick)]
    for number, count in enumerate(counts):
        if not count:
            continue
        centre = -scale + (number + 0.5) * width
        ahead = (centre < 0) == lower_is_better
        parts.append(
            tag(
                "rect",
                class_="bar lead" if ahead else "bar behind",
                x=percent(100 * number / bins + 0.4),
                width=percent(100 / bins - 0.8),
                y=percent(100 - 100 * count / top),
                height=percent(100 * count / top),
                data_tip=f"{count} {'case' if count == 1 else 'cases'}|{_span(centre, width)}",
                tabindex="0",
            )
        )
    parts += [label(x_axis.at(tick), _HEIGHT + 18, x_axis.words(tick, signed=True)) for tick in x_axis.ticks]
    parts.append(line(50, 50, 0, _HEIGHT, "g0"))
    if mean is not None:
        parts.append(_mean(x_axis, mean, ci))
    says = f"Differences between {a} and {b}, case by case: {counted(sum(counts), 'case')} with a difference."
    left, right = (a, b) if lower_is_better else (b, a)
    ends = tag("p", tag("span", f"← {words(left)} better"), tag("span", f"{words(right)} better →"), class_="ends")
    return tag("div", drawing(_HEIGHT, *parts, says=says, interactive=True), ends, class_="plotbox hist chart")


def _span(centre: float, width: float) -> str:
    low, high = centre - width / 2, centre + width / 2
    return f"{low:+.4g} to {high:+.4g}".replace("-", "−")


def _mean(axis: Axis, mean: float, ci: Interval | None) -> str:
    y = 8
    drawn = line(axis.at(ci[0]), axis.at(ci[1]), y, y, "iv tk") if ci is not None else ""
    return drawn + tag("circle", class_="pt tk", cx=percent(axis.at(mean)), cy=y, r=5)


def balance(ahead: int, level: int, behind: int) -> str:
    """Return one bar of cases ahead, level and behind, with their numbers."""
    whole = max(1, ahead + level + behind)
    at, parts = 0.0, []
    for count, kind in ((ahead, "bar lead"), (level, "bar"), (behind, "bar behind")):
        share = 100 * count / whole
        if count:
            parts.append(rect(at, share, 0, 10, kind))
        at += share
    said = [f"ahead on {ahead}", f"level on {level}", f"behind on {behind}"]
    names = tag("p", *(tag("span", text) for text in said), class_="ends")
    return tag("div", drawing(10, *parts, says=", ".join(said)), names, class_="balance")


def shares(rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str]) -> str:
    """Return shares of a whole, a bar per row; `parts` names what they are shares of."""
    kinds = ("bar l2", "bar", "bar behind", "bar same")
    drawn = []
    for name, values in rows:
        at, rects = 0.0, []
        for number, value in enumerate(values):
            if value > 0:
                tip = f"{parts[number]}|{100 * value:.0f} %"
                rects.append(rect(100 * at, 100 * value, 4, 14, kinds[number % len(kinds)], tip=tip))
            at += value
        said = ", ".join(f"{part} {100 * value:.0f} %" for part, value in zip(parts, values, strict=True) if value > 0)
        cells = tag("td", drawing(22, *rects, says=f"{name}: {said}", interactive=True))
        drawn.append(tag("tr", tag("th", words(name), scope="row"), cells))
    used = [number for number in range(len(parts)) if any(values[number] > 0 for _, values in rows)]
    key = key_line([(kinds[number % len(kinds)].replace("bar", "k").strip(), words(parts[number])) for number in used])
    return tag("table", tag("tbody", *drawn), class_="bands") + key


class BarRow(NamedTuple):
    """One row: its parts as (amount, class of the bar, tooltip), and the numbers as text."""

    label: str
    parts: Sequence[tuple[float, str, str]]
    shown: str
    more: str = ""
    href: str = ""


def bars(rows: Sequence[BarRow], *, name: str, number_name: str, whole: float | None = None) -> str:
    """Return a bar per row, as long as its parts together: shares of `whole`, or of the longest row."""
    longest = whole or max((sum(amount for amount, _, _ in row.parts) for row in rows), default=0.0) or 1.0
    body = []
    for row in rows:
        at, rects = 0.0, [rect(0, 100, 8, 10, "track")]
        for amount, kind, tip in row.parts:
            if amount > 0:
                share = 100 * amount / longest
                rects.append(rect(at, share, 8, 10, f"bar {kind}".strip(), tip=tip))
                at += share
        said = f"{row.label}: {row.shown} {row.more}".strip()
        shown = f"{tag('b', words(row.shown))} {tag('small', words(row.more))}"
        body.append((named(row.label, row.href), drawing(26, *rects, says=said, interactive=True), shown))
    return mark_table(name, number_name, "", body)
