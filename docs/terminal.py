"""A terminal's screen: takes what a program writes (text, colours, moves of the cursor, erasing), has rows of cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from rich.cells import cell_len

_PARTS = re.compile(
    r"\x1b\[(?P<numbers>[\d;:]*)(?P<order>[@-~])"
    r"|\x1b\[[<-?][\d;]*[@-~]"  # modes, such as a hidden cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]*[0-Z\\-~]"
    r"|(?P<control>[\x00-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
)
_TAB = 8
_CUBE = (0, 95, 135, 175, 215, 255)


class Style(NamedTuple):
    """How a cell looks. Colours are numbers of the palette, `#rrggbb`, or None: the terminal's own."""

    colour: int | str | None = None
    background: int | str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


class Cell(NamedTuple):
    """One character; empty where the wide one before it goes on."""

    text: str = " "
    style: Style = Style()


Row = tuple[Cell, ...]
_SWITCHES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",)}


class Screen:
    """What a terminal of this size shows."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._height = columns, rows
        self._cells = [[Cell()] * columns for _ in range(rows)]
        self._x = self._y = 0
        self._style = Style()

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(tuple(row) for row in self._cells)

    @property
    def lines(self) -> list[str]:
        return ["".join(cell.text for cell in row).rstrip() for row in self._cells]

    def feed(self, text: str) -> None:
        """Take what a program wrote; whole sequences only."""
        for part in _PARTS.finditer(text):
            if part["text"]:
                for character in part["text"]:
                    self._put(character)
            elif part["control"]:
                self._control(part["control"])
            elif part["order"]:
                self._order(part["order"], [int(number or 0) for number in re.split("[;:]", part["numbers"])])

    def _put(self, character: str) -> None:
        width = cell_len(character)
        if not width:
            return
        if self._x + width > self._columns:
            self._x = 0
            self._down()
        self._cells[self._y][self._x] = Cell(character, self._style)
        if width > 1:
            self._cells[self._y][self._x + 1] = Cell("", self._style)
        self._x += width  # behind the last column the next character goes on in a new line

    def _control(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._down()
        elif character == "\b":
            self._x = max(0, self._x - 1)
        elif character == "\t":
            self._x = min(self._columns - 1, (self._x // _TAB + 1) * _TAB)

    def _down(self) -> None:
        if self._y + 1 < self._height:
            self._y += 1
        else:
            self._cells = [*self._cells[1:], [Cell()] * self._columns]

    def _order(self, order: str, numbers: list[int]) -> None:
        if order == "m":
            self._paint(numbers)
        elif order == "J":
            self._erase_screen(numbers[0])
        elif order == "K":
            self._erase_line(numbers[0])
        elif order in "Hf":
            self._move(x=(numbers[1] if len(numbers) > 1 else 1) - 1, y=numbers[0] - 1)
        elif order in _MOVES:
            x, y = _MOVES[order](self._x, self._y, max(1, numbers[0]))
            self._move(x=x, y=y)

    def _move(self, x: int, y: int) -> None:
        self._x = min(max(0, x), self._columns - 1)
        self._y = min(max(0, y), self._height - 1)

    def _erase_line(self, how: int) -> None:
        start = 0 if how else self._x
        end = self._x + 1 if how == 1 else self._columns
        self._cells[self._y][start:end] = [Cell()] * (end - start)

    def _erase_screen(self, how: int) -> None:
        self._erase_line(how if how < 2 else 2)
        others = range(self._y) if how == 1 else range(self._y + 1, self._height) if how == 0 else range(self._height)
        for y in others:
            self._cells[y] = [Cell()] * self._columns

    def _paint(self, numbers: list[int]) -> None:
        left = list(numbers)
        while left:
            number = left.pop(0)
            if number in (38, 48):
                self._set("colour" if number == 38 else "background", _extended(left))
            elif number == 0:
                self._style = Style()
            elif number in _SWITCHES:
                self._set(_SWITCHES[number], True)
            elif number in _OFF:
                self._style = self._style._replace(**dict.fromkeys(_OFF[number], False))
            else:
                self._plain_colour(number)

    def _plain_colour(self, number: int) -> None:
        tens, colour = divmod(number, 10)
        name = {3: "colour", 9: "colour", 4: "background", 10: "background"}.get(tens)
        if name and colour < 8:
            self._set(name, colour + 8 * (tens >= 9))
        elif name and colour == 9 and tens < 9:
            self._set(name, None)

    def _set(self, name: str, value: int | str | bool | None) -> None:
        self._style = self._style._replace(**{name: value})


_MOVES: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "A": lambda x, y, count: (x, y - count),
    "B": lambda x, y, count: (x, y + count),
    "C": lambda x, y, count: (x + count, y),
    "D": lambda x, y, count: (x - count, y),
    "E": lambda _, y, count: (0, y + count),
    "F": lambda _, y, count: (0, y - count),
    "G": lambda _, y, column: (column - 1, y),
    "d": lambda x, _, line: (x, line - 1),
}


def _extended(left: list[int]) -> int | str | None:
    """Take a colour of 256, or of all, from the numbers that are left."""
    kind = left.pop(0) if left else 0
    if kind == 2 and len(left) >= 3:
        red, green, blue = (left.pop(0) for _ in range(3))
        return f"#{red % 256:02x}{green % 256:02x}{blue % 256:02x}"
    if kind == 5 and left:
        return _of_256(left.pop(0))
    return None


def _of_256(number: int) -> int | str:
    if number < 16:
        return number
    if number >= 232:
        grey = min(255, 8 + 10 * (number - 232))
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    place = number - 16
    red, green, blue = (_CUBE[value] for value in (place // 36, place // 6 % 6, place % 6))
    return f"#{red:02x}{green:02x}{blue:02x}"
