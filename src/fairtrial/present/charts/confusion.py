"""What was asked for against what was done: counts in a matrix, right ones on the diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.present.charts.svg import tag, words

_MOST_NAMED = 6  # columns that have room for names


def confusion_matrix(
    rows: Sequence[str], columns: Sequence[str], counts: Sequence[Sequence[int]], *, corner: str
) -> str:
    """Return the matrix; a cell is right where its row and its column have the same name.

    Many columns have numbers instead of names; every one of them has a row then, which says its name.
    """
    numbered = len(columns) > _MOST_NAMED
    numbers = {name: str(place) for place, name in enumerate(columns, 1)} if numbered else {}
    table = dict(zip(rows, counts, strict=True))
    if numbered:
        table |= {name: [0] * len(columns) for name in columns if name not in table}
    heads = (tag("th", words(numbers.get(name, name)), scope="col", aria_label=name) for name in columns)
    head = tag("tr", tag("td", words(corner), class_="mute"), *heads)
    body = [
        tag(
            "tr",
            tag("th", words(f"{numbers[row]} {row}" if row in numbers else row), scope="row"),
            *(_cell(row, column, count) for column, count in zip(columns, own, strict=True)),
        )
        for row, own in table.items()
    ]
    return tag("table", tag("thead", head), tag("tbody", *body), class_="matrix small confusion")


def _cell(row: str, column: str, count: int) -> str:
    if not count:
        return tag("td", tag("span", "·", class_="mute"))
    tone = "lead" if row == column else "behind"
    said = f"{row}|{count} × {column}"
    return tag("td", tag("span", words(str(count)), class_=tone, data_tip=said, aria_label=said.replace("|", ": ")))
