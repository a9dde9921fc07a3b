"""All cases at a glance: one tick per case and arm, coloured by score."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from fairtrial.present.charts.marks import drawing, key_line
from fairtrial.present.charts.svg import rect, tag, words

_KEY = (("h0", "0"), ("h2", "50"), ("h5", "100"), ("none", "no score"))


class HeatRow(NamedTuple):
    """One arm: its score on every case (0–100, None without a score), and the number next to the row."""

    label: str
    values: Sequence[float | None]
    number: str = ""
    says: str = ""


def step(value: float | None) -> str:
    """Return the colour class of a score."""
    if value is None:
        return "sx"
    return f"s{min(5, int(max(0.0, value) / 100 * 5 + 0.5))}"


def strips(rows: Sequence[HeatRow]) -> str:
    """Return a strip per arm; neighbouring ticks of one colour are one rectangle."""
    cells = []
    for row in rows:
        values, at, parts = row.values, 0, []
        for kind, group in groupby(map(step, values)):
            size = len(list(group))
            parts.append(rect(100 * at / len(values), 100 * size / len(values), 0, 22, kind))
            at += size
        cells += [
            tag("span", words(row.label), class_="lbl"),
            drawing(22, *parts, says=row.says or row.label),
            tag("span", words(row.number), class_="n"),
        ]
    return tag("div", *cells, class_="strip") + key_line(_KEY)
