"""What was asked for against what was done: counts in a matrix, right ones on the diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.present.charts.svg import tag, words


def confusion_matrix(
    rows: Sequence[str], columns: Sequence[str], counts: Sequence[Sequence[int]], *, corner: str
) -> str:
    """Return the matrix; a cell is right where its row and its column have the same name."""
    head = tag(
        "tr", tag("td", words(corner), class_="mute"), *(tag("th", words(name), scope="col") for name in columns)
    )
    body = [
        tag(
            "tr",
            tag("th", words(row), scope="row"),
            *(_cell(row, column, count) for column, count in zip(columns, own, strict=True)),
        )
        for row, own in zip(rows, counts, strict=True)
    ]
    return tag("table", tag("thead", head), tag("tbody", *body), class_="matrix small confusion")


def _cell(row: str, column: str, count: int) -> str:
    if not count:
        return tag("td", tag("span", "·", class_="mute"))
    tone = "lead" if row == column else "behind"
    said = f"{row}|{count} × {column}"
    return tag("td", tag("span", words(str(count)), class_=tone, data_tip=said, aria_label=said.replace("|", ": ")))
