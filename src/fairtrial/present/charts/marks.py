"""What several charts draw: grid lines, ticks, and a value with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fairtrial.present.charts.axis import Axis
from fairtrial.present.charts.svg import dot, label, line, tag

Tone = Literal["", "lead", "behind", "same", "unsure"]
Interval = tuple[float, float]
GLYPHS: dict[Tone, str] = {"lead": "▲", "behind": "▼", "same": "≈", "unsure": "?", "": ""}


def grid_lines(axis: Axis, height: int, *, zero: float | None = None) -> str:
    """Return a vertical line for every tick."""
    return "".join(line(axis.at(tick), axis.at(tick), 0, height, "g0" if tick == zero else "g") for tick in axis.ticks)


def tick_labels(axis: Axis, *, signed: bool = False, y: int = 15, unit: str = "") -> str:
    """Return the numbers of the ticks."""
    return "".join(label(axis.at(tick), y, f"{unit}{axis.words(tick, signed=signed)}") for tick in axis.ticks)


def mark(axis: Axis, value: float | None, ci: Interval | None, *, y: int, r: float = 6, tone: Tone = "") -> str:
    """Return a value as a dot with its interval as a line."""
    drawn = []
    if ci is not None:
        drawn.append(line(axis.at(ci[0]), axis.at(ci[1]), y, y, f"iv {tone}".strip()))
    if value is not None:
        drawn.append(dot(axis.at(value), y, r, f"pt {tone}".strip()))
    return "".join(drawn)


def spoken(shown: str, bounds: str) -> str:
    """Return what a screen reader says for a mark."""
    return f"{shown}, 95 % interval {bounds}" if bounds else shown


def drawing(height: int, *parts: str, says: str = "", kind: str | None = None, interactive: bool = False) -> str:
    """Return an SVG of full width and fixed height. It is a group where its marks can be focused."""
    role = ("group" if interactive else "img") if says else None
    return tag(
        "svg",
        *parts,
        class_=kind,
        height=height,
        role=role,
        aria_label=says or None,
        aria_hidden=None if says else "true",
        focusable="false",
    )


def verdict_mark(tone: Tone, words_html: str) -> str:
    """Return a verdict as a glyph and words: the glyph carries it alone, without the colour."""
    return tag("span", tag("i", GLYPHS[tone], aria_hidden="true"), words_html, class_=f"vg {tone}".strip())


def key_line(entries: Sequence[tuple[str, str]]) -> str:
    """Return a key: the class of a swatch, and what it means."""
    shown = (tag("span", tag("i", class_=f"sw {kind}"), text) for kind, text in entries)
    return tag("p", *shown, class_="keyline")
