"""Small tables for notebooks. Everything in them is escaped: what a model wrote is data.

Colours come from the page around them (`currentColor`), so that they can be read on light and dark pages alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fairtrial.text.printable import printable

_LINE = "1px solid color-mix(in srgb, currentColor 25%, transparent)"
_CELL = f"padding:.2em .8em;border-bottom:{_LINE};vertical-align:top;white-space:pre-line"
_WORDS = ("arm", "against", "check", "result", "why", "reason", "verdict")  # columns of text, not numbers


def block(*parts: str) -> str:
    """Return parts of a page as one."""
    return f'<div class="fairtrial" style="font-size:.95em">{"".join(parts)}</div>'


def heading(text: str) -> str:
    """Return a line in bold."""
    return f'<p style="margin:.3em 0;font-weight:600">{_text(text)}</p>'


def lines(texts: Iterable[str]) -> str:
    """Return lines of text."""
    return "".join(f'<p style="margin:.2em 0;opacity:.8">{_text(text)}</p>' for text in texts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, wraps: bool = True) -> str:
    """Return a table; names and texts are on the left, numbers on the right; cells break lines if it `wraps`."""
    style = _CELL if wraps else _CELL.replace("pre-line", "nowrap")
    sides = ["left" if place == 0 or name in _WORDS else "right" for place, name in enumerate(columns)]
    head = "".join(
        f'<th style="{style};text-align:{sides[place]}">{_text(name)}</th>' for place, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style};text-align:{sides[place]}">{_text(cell)}</td>' for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    frame = "border-collapse:collapse;margin:.4em 0;color:inherit;background:transparent"
    return f'<table style="{frame}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _text(text: object) -> str:
    return escape(printable(str(text)))
