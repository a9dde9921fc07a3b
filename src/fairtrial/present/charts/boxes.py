"""Distributions: the middle half as a box, the middle 90 % as a line, the median as a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.present.charts.axis import linear_axis, log_axis
from fairtrial.present.charts.marks import drawing, grid_lines, mark_table, tick_labels
from fairtrial.present.charts.svg import dot, line, named, words


class Box(NamedTuple):
    """One arm: the 5th, 25th, 50th, 75th and 95th percentile, and the median as text."""

    label: str
    quantiles: tuple[float, float, float, float, float]
    shown: str
    href: str = ""


def boxes(rows: Sequence[Box], *, name: str, unit: str = "") -> str:
    """Return a row per arm. The axis is logarithmic where values differ a hundredfold."""
    values = [value for row in rows for value in row.quantiles]
    positive = [value for value in values if value > 0]
    log = bool(positive) and len(positive) == len(values) and max(positive) / min(positive) > 100
    axis = log_axis(values) if log else linear_axis(values, include=(0.0,), most=5)
    body = []
    for row in rows:
        p5, p25, p50, p75, p95 = (axis.at(value) for value in row.quantiles)
        parts = (line(p5, p95, 13, 13, "iv thin"), line(p25, p75, 13, 13, "iv2"), dot(p50, 13, 4.5, "pt"))
        picture = drawing(26, grid_lines(axis, 26), *parts, says=f"median {row.shown}")
        body.append((named(row.label, row.href), picture, words(row.shown)))
    return mark_table("Arm", name, drawing(20, tick_labels(axis, y=14, unit=unit)), body)
