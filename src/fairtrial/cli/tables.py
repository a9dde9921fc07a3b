"""The one look of tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from fairtrial.core.text import printable


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, names: Sequence[str] = ("arm",)) -> Table:
    """Rows of text. Columns in `names` stand left and may be broken where it gets narrow; numbers never are."""
    found = Table(box=None, padding=(0, 1), header_style="bold")
    for column in columns:
        left = column in names
        found.add_column(column, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for row in rows:
        found.add_row(*(Text(printable(cell)) for cell in row))
    return found
