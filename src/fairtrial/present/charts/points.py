"""Points: score against cost or time with intervals, and a judge's scores against known ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fairtrial.present.charts.axis import Axis, linear_axis, log_axis
from fairtrial.present.charts.marks import (
    Interval,
    Tone,
    drawing,
    ends_of,
    grid_lines,
    mark_table,
    rules,
    tick_labels,
    upright,
)
from fairtrial.present.charts.svg import dot, label, line, link, named, percent, tag, words

_WIDTH, _HEIGHT = 560.0, 270.0  # of a usual plot, to place labels
_NARROW = 300.0  # width of a plot on a phone
_LETTER, _LINE = 7.2, 16.0
_TINY, _TALL = 84, 42
_MOST_NAMED = 60  # points: of more, the best; the rest have their names in tooltips


class Point(NamedTuple):
    """One arm: what it costs or takes, its score and its interval."""

    name: str
    x: float
    y: float
    ci: Interval | None = None
    href: str = ""
    tip: str = ""
    tone: Tone = ""


def scatter(
    points: Sequence[Point],
    *,
    x_name: str,
    unit: str = "",
    log: bool = False,
    within: tuple[float, float] | None = (0.0, 100.0),
) -> str:
    """Return a plot of points with their intervals, and the line of those that no other beats at a lower price."""
    ends = ends_of((point.y, point.ci) for point in points)
    y_axis = linear_axis(ends, within=within, least=10 if within else 0)
    x_axis = (
        log_axis([point.x for point in points]) if log else linear_axis([point.x for point in points], include=(0,))
    )
    frame = _frame(x_axis, y_axis, unit)
    best = _undominated(points)
    few, drawn = len(points) <= _MOST_NAMED, set(best)
    marks = [
        _point(point if few or point in drawn else point._replace(ci=None), x_axis, y_axis, best=point in drawn)
        for point in sorted(points, key=lambda one: one.y)
    ]
    named = "".join(
        label(percent_x, percent_y, name, anchor=anchor, kind=f"lab {tone}".strip(), dx=dx)
        for name, percent_x, percent_y, anchor, tone, dx in _placed(points, x_axis, y_axis)
    )
    scale = f"{x_name} (log scale)" if log else x_name
    scale += "" if few else "; of this many, only those on the line have their intervals"
    says = "; ".join(point.tip.replace("|", ", ") or point.name for point in points[:20])
    plot = drawing(int(_HEIGHT), frame, _pareto(best, x_axis, y_axis), *marks, named, says=says, interactive=True)
    return tag("div", plot, tag("p", words(scale), class_="xname"), class_="plotbox chart")


def _frame(x_axis: Axis, y_axis: Axis, unit: str) -> str:
    numbers = (
        tag("text", f"{unit}{x_axis.words(tick)}", x=percent(x_axis.at(tick)), y="100%", dy="18", text_anchor="middle")
        for tick in x_axis.ticks
    )
    return "".join([rules(y_axis), *numbers])


def _point(point: Point, x_axis: Axis, y_axis: Axis, *, best: bool) -> str:
    kind = "pt" if best else "pt open"
    drawn = upright(y_axis, x_axis.at(point.x), point.y, point.ci, r=6, tone=point.tone, kind=kind)
    return link(point.href, drawn, tip=point.tip or point.name)


def _undominated(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats: none is at least as good for less, or better for as much."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (one.x, -one.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best


def _pareto(best: Sequence[Point], x_axis: Axis, y_axis: Axis) -> str:
    steps = []
    for one, other in pairwise(best):
        x1, x2 = x_axis.at(one.x), x_axis.at(other.x)
        y1, y2 = (percent(100 - y_axis.at(point.y)) for point in (one, other))
        steps += [line(x1, x2, y1, y1, "pareto"), line(x2, x2, y1, y2, "pareto")]
    return "".join(steps)


def _placed(points: Sequence[Point], x_axis: Axis, y_axis: Axis) -> list[tuple[str, float, str, str, Tone, int]]:
    """Place labels right, left, above or below their points where they hit nothing; others have a tooltip only."""
    taken = [_box(*_pixels(point, x_axis, y_axis), 14, 14) for point in points]
    for point in points:
        if point.ci is not None:
            x = _pixels(point, x_axis, y_axis)[0]
            bottom, top = (_HEIGHT * (1 - y_axis.at(end) / 100) for end in point.ci)
            taken.append((x - 2, top, x + 2, bottom))
    for one, other in pairwise(_undominated(points)):  # the steps of the line between them
        (x1, y1), (x2, y2) = _pixels(one, x_axis, y_axis), _pixels(other, x_axis, y_axis)
        taken += [(x1, y1 - 2, x2, y1 + 2), (x2 - 2, y2, x2 + 2, y1)]
    placed = []
    for point in sorted(points, key=lambda one: -one.y)[:_MOST_NAMED]:
        x, y = _pixels(point, x_axis, y_axis)
        name = point.name if len(point.name) <= 24 else f"{point.name[:23]}…"
        width = _LETTER * len(name)
        sides = (
            (12, 4, "start", 12 + width / 2),
            (-12, 4, "end", -12 - width / 2),
            (-8, -12, "end", -8 - width / 2),
            (8, -12, "start", 8 + width / 2),
            (-8, 22, "end", -8 - width / 2),
            (8, 22, "start", 8 + width / 2),
            (0, -12, "middle", 0),
            (0, 22, "middle", 0),
        )
        narrow = _NARROW * x_axis.at(point.x) / 100
        # Sides that also fit on a phone come first.
        for dx, dy, anchor, centre in sorted(sides, key=lambda side: not _fits(narrow + side[3], width)):
            box = _box(x + centre, y + dy - 4, width, _LINE)
            inside = box[0] > -40 and box[2] < _WIDTH + 20 and box[1] > -14 and box[3] < _HEIGHT
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                placed.append((name, x_axis.at(point.x), percent(100 * (y + dy) / _HEIGHT), anchor, point.tone, dx))
                break
    return placed


Box = tuple[float, float, float, float]


def _fits(centre: float, width: float) -> bool:
    return centre - width / 2 > -36 and centre + width / 2 < _NARROW + 8


def _pixels(point: Point, x_axis: Axis, y_axis: Axis) -> tuple[float, float]:
    return _WIDTH * x_axis.at(point.x) / 100, _HEIGHT * (1 - y_axis.at(point.y) / 100)


def _box(x: float, y: float, width: float, height: float) -> Box:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def agreement(points: Sequence[Point], *, x_name: str, y_name: str) -> str:
    """Return scores against the right ones, with the diagonal on which they would agree."""
    axis = Axis(0.0, 100.0, (0.0, 25.0, 50.0, 75.0, 100.0))
    says = f"{y_name} against {x_name}: {len(points)} samples; on the dashed line both agree."
    parts = (_frame(axis, axis, ""), _diagonal(), *_marks(points, axis, 5.5))
    plot = drawing(int(_HEIGHT), *parts, says=says, interactive=True)
    names = tag("p", words(x_name), class_="xname"), tag("p", words(y_name), class_="yname")
    return tag("div", plot, *names, class_="plotbox chart square")


def small_agreement(points: Sequence[Point], *, says: str) -> str:
    """Return the same as a small picture next to a name, without numbers."""
    axis = Axis(0.0, 100.0, ())
    still = [point._replace(href="", tip="") for point in points]
    frame = tag("rect", class_="frame", x="0%", y="0%", width="100%", height="100%")
    return drawing(_TINY, frame, _diagonal(), *_marks(still, axis, 3.5), says=says, kind="dots")


class DotRow(NamedTuple):
    """One row of single values: (value, filled, tooltip, address)."""

    label: str
    dots: Sequence[tuple[float, bool, str, str]]
    shown: str = ""
    href: str = ""


def dot_rows(rows: Sequence[DotRow], *, name: str, number_name: str, within: tuple[float, float] | None = None) -> str:
    """Return every value as a dot, a row per group; filled where it counts, open where it does not."""
    axis = linear_axis([value for row in rows for value, *_ in row.dots], include=(0.0,), within=within, most=5)
    body = []
    for row in rows:
        parts = grid_lines(axis, _TALL), *_stacked(row, axis)
        picture = drawing(_TALL, *parts, says=f"{row.label}: {row.shown}", interactive=True)
        body.append((named(row.label, row.href), picture, words(row.shown)))
    return mark_table(name, number_name, drawing(20, tick_labels(axis, y=14)), body)


def _stacked(row: DotRow, axis: Axis) -> list[str]:
    """Return the dots of a row; those in one place are stacked."""
    taken: dict[int, int] = {}
    marks = []
    for value, filled, tip, href in row.dots:
        place = round(axis.at(value) / 1.5)
        number = taken[place] = taken.get(place, -1) + 1
        side = (-1) ** number * ((number + 1) // 2)
        y = _TALL / 2 + max(-2, min(2, side)) * 7
        marks.append(link(href, dot(axis.at(value), f"{y:g}", 4.5, "pt" if filled else "pt open"), tip=tip))
    return marks


def _diagonal() -> str:
    return tag("line", class_="ref", x1="0%", y1="100%", x2="100%", y2="0%")


def _marks(points: Sequence[Point], axis: Axis, r: float) -> list[str]:
    """Return the points; those above one another are moved a little apart, so that none hides another."""
    taken: dict[int, int] = {}
    drawn = []
    for point in points:
        place = round(axis.at(point.x) / 2)
        number = taken[place] = taken.get(place, -1) + 1
        side = (-1) ** number * ((number + 1) // 2)  # 0, −1, 1, −2, 2 …
        one = upright(axis, axis.at(point.x) + 1.8 * side, point.y, point.ci, r=r, tone=point.tone)
        drawn.append(link(point.href, one, tip=point.tip))
    return drawn
