"""Lines of text in columns, for pages of results in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.text import Text

from fairtrial.cli.console import Console
from fairtrial.cli.options import in_store
from fairtrial.text.printable import printable

INDENT = 12  # columns before a text
_MOST_PRINTED = 200_000  # characters of a text, on thousands of lines
HEAD, QUIET, LOUD, FIRST = "dim", "dim", "bright_yellow", "blue"
VERDICT_STYLES = {
    "better": "blue",
    "worse": LOUD,
    "equivalent": "magenta",
    "cannot tell": QUIET,
    "depends on failures": QUIET,
}


class Column(NamedTuple):
    """A head and a cell for every row; `gap` is the space before the column."""

    head: str | Text
    cells: Sequence[Text]
    right: bool = False
    gap: int = 2

    @property
    def width(self) -> int:
        """The columns of the terminal that it takes."""
        return max(Text(str(self.head)).cell_len, *(cell.cell_len for cell in self.cells), 0)


def total_width(columns: Sequence[Column]) -> int:
    """Return the width of a table, with the space before its first column."""
    return 1 + sum(column.width for column in columns) + sum(column.gap for column in columns[1:])


def table_lines(columns: Sequence[Column]) -> list[Text]:
    """Return a table as lines: its head first, then a line for each row."""
    rows = [[column.cells[number] for column in columns] for number in range(len(columns[0].cells))]
    heads = [c.head if isinstance(c.head, Text) else Text(c.head, HEAD) for c in columns]
    widths = [column.width for column in columns]
    return [_line(columns, widths, row) for row in (heads, *rows)]


def _line(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Text]) -> Text:
    line = Text(" ")
    for number, (column, width, cell) in enumerate(zip(columns, widths, row, strict=True)):
        line.append(" " * (column.gap if number else 0))
        space = " " * (width - cell.cell_len)
        line.append(space if column.right else "")
        line.append_text(cell)
        line.append("" if column.right else space)
    line.rstrip()
    return line


def cells(texts: Iterable[str], style: str = "") -> list[Text]:
    """Return texts from anywhere as cells of one style."""
    return [Text(printable(text), style) for text in texts]


def rule(width: int) -> Text:
    """Return a dotted line across the page."""
    return Text(f" {'╌' * (width - 2)}", QUIET)


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    """Print lines as they are, whatever the width of the terminal."""
    for line in lines:
        console.print(line, soft_wrap=True)


def print_wrapped(console: Console, text: str, style: str = "", *, indent: int = 1, hang: int = 0) -> None:
    """Print a text of any length, broken at words; from the second line on, `hang` columns further in."""
    width = max(20, console.page_width - indent - hang - 1)
    for number, line in enumerate(Text(printable(text), style).wrap(console, width)):
        line.rstrip()
        console.print(Text.assemble(" " * (indent + (hang if number else 0)), line), soft_wrap=True)


def joined_lines(parts: Sequence[str], width: int) -> list[str]:
    """Join facts with dots between them, on as many lines as it takes."""
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]} · {part}" if lines else part
        if lines and Text(longer).cell_len < width - 1:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def print_facts(console: Console, facts: Sequence[str], style: str = "") -> None:
    """Print facts with dots between them."""
    for line in joined_lines(facts, console.page_width):
        console.print(Text(f" {printable(line)}", style), soft_wrap=True)


def print_commands(console: Console, commands: Sequence[tuple[str, str]]) -> None:
    """Print what to type next, and what each command does."""
    if not commands:
        return
    console.print()
    commands = [(in_store(command), why) for command, why in commands]
    lengths = {command: Text(command).cell_len for command, _ in commands}
    beside = [command for command, why in commands if 6 + lengths[command] + len(why) <= console.page_width]
    width = max((lengths[command] for command in beside), default=0)
    for command, why in commands:
        space = " " * (width - lengths[command] + 3)
        if command not in beside or 6 + width + len(why) > console.page_width:
            space = "\n      "
        console.print(Text.assemble("   ", (printable(command), "bold"), space, (why, QUIET)), soft_wrap=True)


def print_block(console: Console, lines: Sequence[Text]) -> None:
    """Print lines after an empty one; nothing if there are none."""
    if lines:
        console.print()
        print_lines(console, lines)


def print_text(console: Console, name: str, text: str | Text | None, style: str = "") -> None:
    """Print a named text as it is, broken at words and indented."""
    if text is None:
        return
    whole = text if isinstance(text, Text) else Text(printable(text), style)
    if (more := len(whole) - _MOST_PRINTED) > 0:
        whole = whole[:_MOST_PRINTED].append(f"\n… and {more:,} more characters: --json has them all", QUIET)
    for place, piece in enumerate(wrapped(console, whole, max(20, console.page_width - INDENT - 1))):
        head = Text(f" {name if place == 0 else '':<{INDENT - 1}}", QUIET)
        console.print(Text.assemble(head, piece), soft_wrap=True)


def wrapped(console: Console, text: Text, width: int) -> list[Text]:
    """Return the lines of a text, broken at words where they are longer than that."""
    pieces = [piece for line in text.split("\n", allow_blank=True) for piece in line.wrap(console, width) or [Text("")]]
    for piece in pieces:
        piece.rstrip()
    return pieces
