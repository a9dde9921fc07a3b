"""What several charts draw: grid lines, ticks, and a value with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from fairtrial.present.charts.axis import Axis
from fairtrial.present.charts.svg import dot, label, line, percent, tag, words

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


def upright(axis: Axis, x: float, value: float, ci: Interval | None, *, r: float, tone: Tone, kind: str = "pt") -> str:
    """Return a value as a dot with its interval as a vertical line."""
    drawn = ""
    if ci is not None:
        low, high = (percent(100 - axis.at(end)) for end in ci)
        drawn = line(x, x, low, high, f"iv thin {tone}".strip())
    return drawn + dot(x, percent(100 - axis.at(value)), r, f"{kind} {tone}".strip())


def rule(position: float, text: str) -> str:
    """Return a horizontal line with its number, at a position from below."""
    y = percent(100 - position)
    return tag("line", class_="g", x1="0%", x2="100%", y1=y, y2=y) + tag(
        "text", text, x="0%", y=y, dx="-10", dy="4", text_anchor="end"
    )


def rules(axis: Axis) -> str:
    """Return a horizontal line for every tick."""
    return "".join(rule(axis.at(tick), axis.words(tick)) for tick in axis.ticks)


def scaled(ci: Interval | None, factor: float) -> Interval | None:
    """Return an interval on another scale."""
    return None if ci is None else (factor * ci[0], factor * ci[1])


def ends_of(marks: Iterable[tuple[float | None, Interval | None]]) -> list[float]:
    """Return what an axis of values with intervals has to show."""
    return [end for value, ci in marks for end in (*(ci or ()), *(() if value is None else (value,)))]


def mark_table(name: str, number_name: str, ticks: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a table of names, pictures below the ticks, and numbers."""
    head = tag(
        "tr",
        tag("th", words(name), scope="col"),
        tag("td", ticks, class_="catp"),
        tag("th", words(number_name), class_="num", scope="col"),
    )
    body = (
        tag("tr", tag("th", label, scope="row"), tag("td", picture, class_="catp"), tag("td", shown, class_="num"))
        for label, picture, shown in rows
    )
    return tag("table", tag("thead", head), tag("tbody", *body), class_="tbl kinds")


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
