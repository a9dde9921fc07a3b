"""The one look of tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from fairtrial.cli.console import Console
from fairtrial.core.text import printable

_SHORTEST = 8


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: Sequence[str] = ("arm",),
    words: Sequence[str] = ("verdict", "status", "run"),
) -> Table:
    """Rows of text. Names and words stand left; names lose their middle where it gets narrow, nothing else does."""
    found = Table(box=None, padding=(0, 1), header_style="bold")
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([_width(name), *(_width(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    left = [place for place, name in enumerate(columns) if name in names]
    room = Console().width - sum(width + 2 for place, width in enumerate(widths) if place not in left) - 2 * len(left)
    for column in columns:
        found.add_column(column, justify="left" if column in (*names, *words) else "right", no_wrap=True)
    share = _share([widths[place] for place in left], room)
    for row in cells:
        found.add_row(*(Text(shortened(cell, share) if place in left else cell) for place, cell in enumerate(row)))
    return found


def _share(widths: Sequence[int], room: int) -> int:
    """How wide a name may be, so that all that stand left fit together; short ones leave room to long ones."""
    most = max(widths, default=0)
    while most > _SHORTEST and sum(min(width, most) for width in widths) > room:
        most -= 1
    return most


def _width(cell: str) -> int:
    return max((cell_len(line) for line in cell.split("\n")), default=0)


def shortened(name: str, most: int) -> str:
    """A name without its middle: what tells names apart stands at their ends."""
    lines = []
    for line in name.split("\n"):
        half = (most - 1) // 2
        lines.append(line if cell_len(line) <= most else f"{line[: most - 1 - half]}…{line[-half:]}")
    return "\n".join(lines)
