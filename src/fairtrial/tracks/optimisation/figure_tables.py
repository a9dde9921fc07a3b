"""The tables of a report on prompt styles as HTML; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from fairtrial.present.charts.svg import safe, tag, words
from fairtrial.tracks.optimisation.analysis import OptimisationReport
from fairtrial.tracks.optimisation.style_tables import Difference, Group, ShownCell, StyleRow, format_table


def measured_table(groups: Sequence[Group], columns: Sequence[str]) -> Markup:
    """Return every style on all problems and on each kind, mean and deviation above the interval or median."""
    heads = ["Style", "Answers", *(name[:1].upper() + name[1:] for name in columns)]
    bodies = [tag("tbody", _title(group.title, len(heads)), *map(_row, group.rows)) for group in groups]
    return _table(heads, bodies, text_columns=1)


def _title(title: str, columns: int) -> str:
    return tag("tr", tag("th", words(title.capitalize()), scope="rowgroup", colspan=str(columns), class_="group"))


def _row(row: StyleRow) -> str:
    cells = [tag("td", _shown(cell), class_="num") for cell in row.cells]
    return tag(
        "tr",
        tag("th", words(row.arm), scope="row"),
        tag("td", row.answers, class_="num"),
        *cells,
        *([tag("td", row.median_gap, class_="num")] if row.median_gap else []),
    )


def _shown(cell: ShownCell) -> str:
    return words(cell.main) + (tag("small", words(cell.interval), class_="under") if cell.interval else "")


def difference_table(rows: Iterable[Difference]) -> Markup:
    """Return every pair with its difference, interval, adjusted p and verdict."""
    lines = [
        tag(
            "tr",
            *(tag("td", words(text)) for text in (row.problems, row.measure, row.a, row.b, row.verdict)),
            *(
                tag("td", words(text), class_="num")
                for text in (row.difference, row.interval, row.p, row.paired_t, row.problem_count)
            ),
        )
        for row in rows
    ]
    heads = (
        *("Problems", "By", "Style", "Against", "Verdict"),
        *("Difference", "95 % CI", "p (Holm)", "Paired t p", "Count"),
    )
    return _table(heads, [tag("tbody", *lines)] if lines else [], text_columns=5)


def format_steps_table(report: OptimisationReport) -> Markup:
    """Return how far each style keeps to the format."""
    columns, rows = format_table(report)
    lines = [
        tag("tr", tag("th", words(row[0]), scope="row"), *(tag("td", words(text), class_="num") for text in row[1:]))
        for row in rows
    ]
    heads = [name[:1].upper() + name[1:] for name in columns]
    return _table(heads, [tag("tbody", *lines)] if lines else [], text_columns=1)


def _table(heads: Sequence[str], bodies: Sequence[str], *, text_columns: int) -> Markup:
    if not bodies:
        return Markup("")
    cells = [
        tag("th", words(head), scope="col", class_=None if place < text_columns else "num")
        for place, head in enumerate(heads)
    ]
    return safe(tag("table", tag("thead", tag("tr", *cells)), *bodies, class_="tbl styles"))
