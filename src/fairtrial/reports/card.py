"""The picture that other sites show with a link (Open Graph): the headline and the first arms, 1200 × 630."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from fairtrial.analyse.leaderboard import Contender, Leaderboard
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.charts.axis import Axis, linear_axis
from fairtrial.present.charts.svg import tag, words
from fairtrial.text.printable import clipped, one_line

WIDTH, HEIGHT = 1200, 630
_INK, _DIM, _LINE, _PAPER, _LEAD, _DOT = "#15171b", "#5f6570", "#e5e5e1", "#f8f8f6", "#0a5ca8", "#565d68"
_SIDE = 72
_LEFT, _RIGHT = 380, 880  # of the plot
_MOST_ARMS = 5
_ROW = 50


def card(board: Leaderboard, headline: str, *, suite: str, facts: str) -> str:
    """Return the picture as SVG."""
    lines = _wrapped(headline)
    size = 50 if len(lines) <= 2 else 42
    top = 152
    head = [_text(_SIDE, top + place * size * 1.2, line, size=size, weight=640) for place, line in enumerate(lines)]
    rows_top = max(296, int(top + len(lines) * size * 1.2))
    most = min(_MOST_ARMS, (HEIGHT - 76 - rows_top) // _ROW)
    parts = [
        tag("rect", width=WIDTH, height=HEIGHT, fill=_PAPER),
        tag("rect", width=WIDTH, height=8, fill=_LEAD),
        _mark(),
        _text(_SIDE + 56, 82, "fairtrial", size=28, weight=650),
        _text(WIDTH - _SIDE, 82, clipped(one_line(suite), 48), size=24, colour=_DIM, anchor="end"),
        *head,
        *_rows(board, rows_top, most),
        _text(_SIDE, HEIGHT - 34, clipped(facts, 100), size=22, colour=_DIM),
    ]
    return tag(
        "svg",
        tag("title", words(headline)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        font_family='system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif',
    )


def write_card(svg: str, folder: Path, name: str) -> str:
    """Write the picture as PNG where a browser can draw it, else as SVG; return the name of the file."""
    from fairtrial.webpage.picture import take_picture  # a browser: only cards as pictures need it

    page = f'<!doctype html><meta charset="utf-8"><style>html,body{{margin:0}}svg{{display:block}}</style>{svg}'
    folder.mkdir(parents=True, exist_ok=True)
    if take_picture(page, folder / f"{name}.png", width=WIDTH, height=HEIGHT):
        return f"{name}.png"
    (folder / f"{name}.svg").write_text(svg, "utf-8")
    return f"{name}.svg"


def _wrapped(headline: str) -> list[str]:
    text = one_line(headline)
    for width, most in ((36, 2), (42, 3)):
        lines = textwrap.wrap(text, width)
        if len(lines) <= most:
            return lines
    return [*lines[:2], clipped(" ".join(lines[2:]), 42)]


def _rows(board: Leaderboard, top: int, most: int) -> list[str]:
    scale = Scale(board.metric)
    shown: Sequence[Contender] = board.places[:most]
    ends = [scale.factor * end for one in shown for end in (one.aggregate.ci95 or (one.aggregate.mean or 0.0,))]
    axis = linear_axis(ends, within=None if board.metric else (0.0, 100.0), least=0 if board.metric else 20)
    leading = board.front
    drawn = [
        tag("line", x1=_at(axis, tick), x2=_at(axis, tick), y1=top - 8, y2=top + _height(shown) - 12, stroke=_LINE)
        for tick in axis.ticks
    ]
    for place, one in enumerate(shown):
        y, colour = top + 18 + place * _ROW, _LEAD if one.label in leading else _DOT
        value = one.aggregate.mean or 0.0
        drawn.append(_text(_SIDE, y + 9, clipped(one_line(one.label), 20), size=26, weight=600))
        if one.aggregate.ci95 is not None:
            low, high = (_at(axis, scale.factor * end) for end in one.aggregate.ci95)
            drawn.append(
                tag("line", x1=low, x2=high, y1=y, y2=y, stroke=colour, stroke_width=5, stroke_linecap="round")
            )
            drawn.append(
                _text(
                    WIDTH - _SIDE,
                    y + 8,
                    interval_words(one.aggregate.ci95, board.metric),
                    size=22,
                    colour=_DIM,
                    anchor="end",
                )
            )
        drawn.append(
            tag("circle", cx=_at(axis, scale.factor * value), cy=y, r=10, fill=colour, stroke=_PAPER, stroke_width=3)
        )
        drawn.append(_text(980, y + 10, signs(scale.plain(one.aggregate.mean)), size=30, weight=640, anchor="end"))
    return drawn


def _height(shown: Sequence[Contender]) -> int:
    return _ROW * len(shown)


def _at(axis: Axis, value: float) -> str:
    return f"{_LEFT + (_RIGHT - _LEFT) * axis.at(value) / 100:.1f}"


def _mark() -> str:
    path = f"M{_SIDE} 60v24M{_SIDE + 42} 60v24M{_SIDE} 72h42"
    line = tag("path", d=path, fill="none", stroke=_LEAD, stroke_width=5, stroke_linecap="round")
    return line + tag("circle", cx=_SIDE + 25, cy=72, r=12, fill=_LEAD)


def _text(
    x: float, y: float, text: str, *, size: int, weight: int = 400, colour: str = _INK, anchor: str = "start"
) -> str:
    return tag(
        "text",
        words(text),
        x=f"{x:.0f}",
        y=f"{y:.0f}",
        font_size=size,
        font_weight=weight,
        fill=colour,
        text_anchor=anchor,
    )
