"""Small tables and figures for notebooks. Everything in them is escaped: what a model wrote is data.

Colours come from the page around them (`currentColor`), so that they can be read on light and dark pages alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from fairtrial.core.text import printable

_LINE = "1px solid color-mix(in srgb, currentColor 25%, transparent)"
_CELL = f"padding:.2em .8em;border-bottom:{_LINE};vertical-align:top;white-space:pre-line"
_WIDTH, _ROW, _LABELS = 560, 24, 200
_LONGEST = 28
_WORDS = ("arm", "against", "check", "result", "why", "reason", "verdict")  # columns of text, not numbers


class Bar(NamedTuple):
    """One line of a figure: a mean from 0 to 1 and its interval."""

    name: str
    value: float | None
    interval: tuple[float, float] | None


def block(*parts: str) -> str:
    """Return parts of a page as one."""
    return f'<div class="fairtrial" style="font-size:.95em">{"".join(parts)}</div>'


def heading(text: str) -> str:
    """Return a line in bold."""
    return f'<p style="margin:.3em 0;font-weight:600">{_text(text)}</p>'


def lines(texts: Iterable[str]) -> str:
    """Return lines of text."""
    return "".join(f'<p style="margin:.2em 0;opacity:.8">{_text(text)}</p>' for text in texts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; names and texts are on the left, numbers on the right."""
    sides = ["left" if place == 0 or name in _WORDS else "right" for place, name in enumerate(columns)]
    head = "".join(
        f'<th style="{_CELL};text-align:{sides[place]}">{_text(name)}</th>' for place, name in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL};text-align:{sides[place]}">{_text(cell)}</td>' for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    style = "border-collapse:collapse;margin:.4em 0;color:inherit;background:transparent"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def figure(bars: Sequence[Bar], title: str) -> str:
    """Return the means and intervals of arms on a scale from 0 to 100, as SVG."""
    height = _ROW * len(bars) + 28
    marks = "".join(_bar(bar, number) for number, bar in enumerate(bars))
    ticks = "".join(_tick(value, height) for value in (0, 25, 50, 75, 100))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'style="color:inherit;max-width:100%;font:12px system-ui,sans-serif"><title>{_text(title)}</title>'
        f"{ticks}{marks}</svg>"
    )


def _x(value: float) -> float:
    return round(_LABELS + (_WIDTH - _LABELS - 20) * min(1.0, max(0.0, value)), 1)


def _tick(value: int, height: int) -> str:
    x = _x(value / 100)
    return (
        f'<line x1="{x}" x2="{x}" y1="4" y2="{height - 20}" stroke="currentColor" stroke-opacity=".15"/>'
        f'<text x="{x}" y="{height - 6}" text-anchor="middle" fill="currentColor" fill-opacity=".7">{value}</text>'
    )


def _bar(bar: Bar, number: int) -> str:
    y = _ROW * number + 16
    name = bar.name if len(bar.name) <= _LONGEST else f"{bar.name[: _LONGEST - 1]}…"
    parts = [f'<text x="{_LABELS - 12}" y="{y + 4}" text-anchor="end" fill="currentColor">{_text(name)}</text>']
    if bar.interval is not None:
        low, high = map(_x, bar.interval)
        parts.append(f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="2"/>')
    if bar.value is not None:
        parts.append(f'<circle cx="{_x(bar.value)}" cy="{y}" r="4.5" fill="currentColor"/>')
    return "".join(parts)


def _text(text: object) -> str:
    return escape(printable(str(text)))
