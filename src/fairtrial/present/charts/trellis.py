"""Small marks by kind of case and arm: where an arm is stronger or weaker than it is overall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.present.charts.axis import linear_axis
from fairtrial.present.charts.marks import Interval, Tone, drawing, ends_of, grid_lines, mark, spoken
from fairtrial.present.charts.svg import line, named, tag, words


class TrellisCell(NamedTuple):
    """One arm on one kind of case."""

    value: float | None
    ci: Interval | None
    shown: str
    bounds: str = ""
    tone: Tone = ""


class TrellisRow(NamedTuple):
    """One kind of case."""

    label: str
    cases: str
    cells: Sequence[TrellisCell]
    href: str = ""


def trellis(
    rows: Sequence[TrellisRow],
    arms: Sequence[str],
    overall: Sequence[float | None],
    *,
    name: str,
    within: tuple[float, float] | None = (0.0, 100.0),
) -> str:
    """Return a table of kinds × arms; the dashed line is the arm's overall value."""
    cells = [cell for row in rows for cell in row.cells]
    axis = linear_axis(ends_of((cell.value, cell.ci) for cell in cells), within=within, most=4)
    head = tag("tr", tag("th", words(name), scope="col"), *(tag("th", words(arm), scope="col") for arm in arms))
    body = []
    for row in rows:
        drawn = []
        for cell, mean in zip(row.cells, overall, strict=True):
            reference = "" if mean is None else line(axis.at(mean), axis.at(mean), 0, 26, "ref")
            picture = drawing(
                26,
                grid_lines(axis, 26),
                reference,
                mark(axis, cell.value, cell.ci, y=13, r=4.5, tone=cell.tone),
                says=spoken(cell.shown, cell.bounds),
            )
            value = tag("b", words(cell.shown), class_=f"c-{cell.tone}" if cell.tone else None)
            drawn.append(tag("td", tag("div", value, picture, class_="cellp")))
        label = named(row.label, row.href)
        body.append(tag("tr", tag("th", label, tag("small", words(row.cases)), scope="row"), *drawn))
    return tag("table", tag("thead", head), tag("tbody", *body), class_="trellis")
