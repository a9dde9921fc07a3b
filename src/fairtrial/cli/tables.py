"""Tables for the terminal, all in the same style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from fairtrial.cli.console import Console
from fairtrial.text.printable import printable

_MIN_NAME_WIDTH = 8


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: Sequence[str] = ("arm",),
    words: Sequence[str] = ("verdict", "status", "run"),
) -> Table:
    """Build a table. `names` and `words` are left-aligned; in a narrow terminal only `names` are shortened."""
    result = Table(box=None, padding=(0, 1), header_style="bold")
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([_width(name), *(_width(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    name_places = [place for place, name in enumerate(columns) if name in names]
    room = (
        Console().width
        - sum(width + 2 for place, width in enumerate(widths) if place not in name_places)
        - 2 * len(name_places)
    )
    for column in columns:
        result.add_column(column, justify="left" if column in (*names, *words) else "right", no_wrap=True)
    name_width = _name_width([widths[place] for place in name_places], room)
    for row in cells:
        result.add_row(
            *(Text(shortened(cell, name_width) if place in name_places else cell) for place, cell in enumerate(row))
        )
    return result


def _name_width(widths: Sequence[int], room: int) -> int:
    """Return the largest width of a name at which all name columns fit; short names leave room for long ones."""
    width_limit = max(widths, default=0)
    while width_limit > _MIN_NAME_WIDTH and sum(min(width, width_limit) for width in widths) > room:
        width_limit -= 1
    return width_limit


def _width(cell: str) -> int:
    return max((cell_len(line) for line in cell.split("\n")), default=0)


def shortened(name: str, max_width: int) -> str:
    """Shorten a name by cutting its middle, because names usually differ at their ends."""
    half = (max_width - 1) // 2
    return "\n".join(
        line
        if cell_len(line) <= max_width
        else f"{_fitting(line, max_width - 1 - half)}…{_fitting(line[::-1], half)[::-1]}"
        for line in name.split("\n")
    )


def short_names(names: Sequence[str], max_width: int) -> list[str]:
    """Shorten names that have to be told apart: what all of them begin with goes first."""
    names = [printable(name) for name in names]
    if all(cell_len(name) <= max_width for name in names):
        return names
    common = 0 if len(names) < 2 else _common(min(names), max(names))
    if common > 2:
        names = [f"…{name[common:]}" for name in names]
    return [shortened(name, max_width) for name in names]


def _common(one: str, other: str) -> int:
    """Return how many characters two names begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _fitting(text: str, width: int) -> str:
    """Return as many characters from the start as fit, of which some are two columns wide."""
    used = 0
    for place, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:place]
    return text
