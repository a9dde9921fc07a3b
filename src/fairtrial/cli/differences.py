"""Differences with their intervals in the terminal, drawn on a common axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from fairtrial.analyse.comparison import Verdict
from fairtrial.cli.axis import MIN_WIDTH, drawn, scaled
from fairtrial.cli.layout import QUIET, VERDICT_STYLES, Column, cells, table_lines, total_width
from fairtrial.cli.tables import short_names
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.words.verdicts import GLYPHS

NARROW = 60  # columns below which nothing is drawn
_MOST_BAR = 44


class DifferenceRow(NamedTuple):
    """A difference to show: its name, its number of cases, and the numbers."""

    name: str
    cases: int | None
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
    metric: str


def difference_lines(by: str, rows: Sequence[DifferenceRow], width: int, *, plain: bool) -> list[Text]:
    """Return differences with their intervals, drawn on a common axis if there is room."""
    names = short_names([row.name for row in rows], max(16, width - 60) if width < 110 else 44)
    columns = [Column(by, cells(names))]
    if any(row.cases is not None for row in rows):
        columns.append(Column("cases", cells([str(row.cases) for row in rows], QUIET), right=True))
    marks = [Text(GLYPHS[row.verdict], VERDICT_STYLES[row.verdict]) for row in rows]
    signed = [signs(Scale(row.metric).signed(row.difference)) for row in rows]
    bounds = ["–" if row.ci95 is None else interval_words(row.ci95, row.metric) for row in rows]
    numbers = [
        Column("", marks),
        Column("difference", cells(signed), right=True, gap=1),
        Column("95 % CI", cells(bounds)),
    ]
    left = width - 3 - total_width([*columns, *numbers])
    if not plain and width >= NARROW and left >= MIN_WIDTH:
        factor = Scale(rows[0].metric).factor
        intervals = [scaled(row.difference, row.ci95, factor) for row in rows]
        styles = ["" if row.verdict == "cannot tell" else VERDICT_STYLES[row.verdict] for row in rows]
        columns.append(drawn(intervals, min(_MOST_BAR, left), styles, zero=True))
    return table_lines([*columns, *numbers])
