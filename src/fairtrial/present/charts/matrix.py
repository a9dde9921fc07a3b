"""Every pair of arms: the row against the column, coloured by verdict."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from fairtrial.present.charts.marks import GLYPHS, Tone, drawing, key_line
from fairtrial.present.charts.svg import rect, tag, words

_NUMBERS = 8  # arms up to which a cell has room for its numbers
_CELLS = 20  # arms up to which every pair is a cell of its own
_KEY = (("strong", "row better, 20 or more"), ("lead", "row better"), ("unsure", "too close to call"))


class MatrixCell(NamedTuple):
    """A pair: the arm of the row, which is placed above, against that of the column."""

    tone: Tone
    shown: str
    bounds: str = ""
    href: str = ""
    tip: str = ""
    strong: bool = False


class Matrix(NamedTuple):
    """The arms in order, and for each one its pairs with those below it."""

    labels: Sequence[str]
    rows: Sequence[Sequence[MatrixCell]]


def matrix(chart: Matrix) -> str:
    """Return the upper half of the matrix."""
    if len(chart.labels) > _CELLS:
        return _bands(chart)
    small = len(chart.labels) > _NUMBERS
    head = tag("tr", tag("td"), *(tag("th", words(label), scope="col") for label in chart.labels[1:]))
    body = []
    for place, cells in enumerate(chart.rows):
        before = "".join(tag("td") for _ in range(place))
        drawn = [_cell(cell, small=small) for cell in cells]
        body.append(tag("tr", tag("th", words(chart.labels[place]), scope="row"), before, *drawn))
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="matrix small" if small else "matrix")
    return f"{table}{_key(chart)}"


def _cell(cell: MatrixCell, *, small: bool) -> str:
    strong = " strong" if cell.strong else ""
    inner = words(GLYPHS[cell.tone]) if small else words(cell.shown)
    inner += "" if small or not cell.bounds else tag("small", words(cell.bounds))
    name = "a" if cell.href else "span"
    said = cell.tip if small else None
    return tag(
        "td",
        tag(
            name,
            inner,
            class_=f"{cell.tone}{strong}".strip(),
            href=cell.href or None,
            data_tip=cell.tip or None,
            aria_label=said.replace("|", ", ") if said else None,
        ),
    )


def _bands(chart: Matrix) -> str:
    """Return many arms as one picture: neighbouring pairs with the same verdict are one band."""
    count = len(chart.labels)
    rows = []
    for place, cells in enumerate(chart.rows):
        at, parts = place + 1, []
        for tone, group in groupby(cells, key=lambda cell: (cell.tone, cell.strong)):
            size = len(list(group))
            kind = f"band-{tone[0] or 'none'}{' strong' if tone[1] else ''}"
            parts.append(rect(100 * at / count, 100 * size / count, 1, 10, kind))
            at += size
        wins = sum(cell.tone == "lead" for cell in cells)
        said = f"better than {wins} of the {len(cells)} arms below it"
        rows.append(
            tag(
                "tr",
                tag("th", words(chart.labels[place]), scope="row"),
                tag("td", drawing(12, *parts, says=said)),
                tag("td", f"{wins} of {len(cells)}", class_="num"),
            )
        )
    head = tag(
        "tr",
        tag("th", "Arm", scope="col"),
        tag("th", "against every arm below it", scope="col"),
        tag("th", "Better than", class_="num", scope="col"),
    )
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="bands") + _key(chart)


def _key(chart: Matrix) -> str:
    cells = [cell for row in chart.rows for cell in row]
    used = {("strong" if cell.strong else cell.tone) for cell in cells}
    entries = [entry for entry in _KEY if entry[0] in used]
    if "same" in used:
        entries.append(("same", "equivalent"))
    if "behind" in used:
        entries.append(("behind", "row worse"))
    return key_line(entries)
