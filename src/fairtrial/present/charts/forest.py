"""The ranking as a picture: every arm with its interval, its paired difference to the first, and brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.present.charts.axis import Axis, linear_axis
from fairtrial.present.charts.marks import (
    Interval,
    Tone,
    drawing,
    ends_of,
    grid_lines,
    mark,
    mark_table,
    spoken,
    tick_labels,
    verdict_mark,
)
from fairtrial.present.charts.svg import line, named, tag, words

_ROW, _HEAD = 40, 22
_JOIN = 9  # from one bracket to the next


class ForestRow(NamedTuple):
    """One arm. Numbers are on the axis; texts are what the table says."""

    label: str
    value: float | None
    ci: Interval | None = None
    shown: str = ""
    bounds: str = ""
    rank: str = ""
    href: str = ""
    tip: str = ""
    difference: float | None = None
    difference_ci: Interval | None = None
    difference_words: str = ""
    tone: Tone = ""
    pair_href: str = ""
    more: tuple[str, ...] = ()
    lead: bool = False  # may be first, and not every arm may


class Forest(NamedTuple):
    """Everything that a forest shows."""

    rows: Sequence[ForestRow]
    value_name: str = "Score"
    more_names: tuple[str, ...] = ()
    within: tuple[float, float] | None = (0.0, 100.0)
    first: str = ""  # the arm that differences are to; empty if there is only one arm
    brackets: Sequence[Sequence[str]] = ()  # labels of arms of which no two can be separated


def forest(chart: Forest) -> str:
    """Return the table."""
    ends = ends_of((row.value, row.ci) for row in chart.rows)
    axis = linear_axis(ends, within=chart.within, least=20 if chart.within else 0)
    others = [row for row in chart.rows if row.difference is not None]
    gaps = ends_of((row.difference, row.difference_ci) for row in others)
    gap_axis = linear_axis(gaps, include=(0.0,), most=5) if chart.first and others else None
    leader = next((row.value for row in chart.rows if row.value is not None), None) if len(chart.rows) > 1 else None
    joins = _joins(chart)
    rows = [_row(row, axis, gap_axis, leader, joins.get(row.label)) for row in chart.rows]
    return tag("table", _head(chart, axis, gap_axis), tag("tbody", *rows), class_="forest")


def _head(chart: Forest, axis: Axis, gap_axis: Axis | None) -> str:
    cells = [
        tag("th", "Rank", class_="rank opt", scope="col"),
        tag("th", "Arm", class_="opt", scope="col"),
        tag("td", drawing(_HEAD, tick_labels(axis)), class_="plot p1"),
        tag("th", words(chart.value_name), class_="num opt", scope="col"),
        tag("th", "95 % CI", class_="opt", scope="col"),
    ]
    if gap_axis is not None:
        cells += [
            tag("td", drawing(_HEAD, tick_labels(gap_axis, signed=True)), class_="plot p2"),
            tag("th", f"To {words(chart.first)}", class_="vs", scope="col"),
        ]
    cells += [tag("th", words(name), class_="num opt", scope="col") for name in chart.more_names]
    if chart.brackets:
        cells.append(tag("td", class_="joins opt"))
    return tag("thead", tag("tr", *cells))


def _joins(chart: Forest) -> dict[str, str]:
    """Return for each arm its part of the brackets: a line where it belongs to one, dots where one passes it."""
    labels = [row.label for row in chart.rows]
    lead = {row.label for row in chart.rows if row.lead}
    cells = {}
    for place, label in enumerate(labels) if chart.brackets else ():
        lines = []
        for number, bracket in enumerate(chart.brackets):
            first, last = labels.index(bracket[0]), labels.index(bracket[-1])
            if first <= place <= last:
                x = 5 + _JOIN * number
                ends = (8 if place == first else 0), (_ROW - 8 if place == last else _ROW)
                kind = "join lead" if lead and lead <= set(bracket) else "join"
                lines.append(
                    tag("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_=kind if label in bracket else f"{kind} gap")
                )
        joined = [one for one in labels if one != label and any({one, label} <= set(own) for own in chart.brackets)]
        says = f"cannot be separated from {', '.join(joined)}" if joined else "separated from every other arm"
        width = 10 + _JOIN * len(chart.brackets)
        cells[label] = tag("svg", *lines, viewBox=f"0 0 {width} {_ROW}", role="img", aria_label=says, focusable="false")
    return cells


def _row(row: ForestRow, axis: Axis, gap_axis: Axis | None, leader: float | None, joins: str | None) -> str:
    reference = "" if leader is None else line(axis.at(leader), axis.at(leader), 0, _ROW, "ref")
    drawn = mark(axis, row.value, row.ci, y=_ROW // 2, tone="lead" if row.lead else "")
    cells = [
        tag("td", words(row.rank), class_="rank"),
        tag("th", named(row.label, row.href, row.tip), class_="arm", scope="row"),
        tag(
            "td",
            drawing(_ROW, grid_lines(axis, _ROW), reference, drawn, says=spoken(row.shown, row.bounds)),
            class_="plot p1",
        ),
        tag("td", words(row.shown), class_="score"),
        tag("td", words(row.bounds or "–"), class_="ivt"),
    ]
    if gap_axis is not None:
        cells += _gap_cells(row, gap_axis)
    cells += [tag("td", words(text), class_="num opt ink2") for text in row.more]
    if joins is not None:
        cells.append(tag("td", joins, class_="joins opt"))
    return tag("tr", *cells, class_="lead" if row.lead else None)


def _gap_cells(row: ForestRow, axis: Axis) -> list[str]:
    grid = grid_lines(axis, _ROW, zero=0.0)
    if row.difference is None:
        return [tag("td", drawing(_ROW, grid), class_="plot p2"), tag("td", words(row.difference_words), class_="vs")]
    drawn = mark(axis, row.difference, row.difference_ci, y=_ROW // 2, r=5, tone=row.tone)
    said = verdict_mark(row.tone, words(row.difference_words))
    return [
        tag("td", drawing(_ROW, grid, drawn, says=row.difference_words), class_="plot p2"),
        tag("td", tag("a", said, href=row.pair_href) if row.pair_href else said, class_="vs"),
    ]


def small_forest(
    rows: Sequence[ForestRow],
    *,
    name: str,
    number_name: str,
    zero: float | None = None,
    within: tuple[float, float] | None = None,
) -> str:
    """Return a small table with a mark per row: values or differences by kind of case."""
    ends = ends_of((row.value, row.ci) for row in rows)
    axis = linear_axis(ends, include=() if zero is None else (zero,), within=within, most=4)
    body = []
    for row in rows:
        label = named(row.label, row.href, row.tip) + (tag("small", words(row.rank)) if row.rank else "")
        drawn = mark(axis, row.value, row.ci, y=13, r=5, tone=row.tone)
        picture = drawing(26, grid_lines(axis, 26, zero=zero), drawn, says=spoken(row.shown, row.bounds))
        body.append((label, picture, f"{tag('b', words(row.shown))} {tag('small', words(row.bounds))}"))
    ticks = tick_labels(axis, signed=zero is not None, y=14)
    return mark_table(name, number_name, drawing(20, ticks), body)


def mean_axis(intervals: Sequence[Interval | None], values: Sequence[float]) -> Axis:
    """Return an axis for scores of several rows that are drawn one by one."""
    return linear_axis([*(end for ci in intervals if ci for end in ci), *values], within=(0.0, 100.0), least=20, most=5)


def mean_ticks(axis: Axis) -> str:
    """Return the ticks above such rows."""
    return drawing(20, tick_labels(axis, y=14))


def mean_mark(axis: Axis, row: ForestRow) -> str:
    """Return one such row: a score with its interval."""
    drawn = mark(axis, row.value, row.ci, y=18, r=5, tone=row.tone)
    return drawing(36, grid_lines(axis, 36), drawn, says=spoken(row.shown, row.bounds))
