"""A badge for a README: the first arm of a run, its score, and whether it leads."""

from __future__ import annotations

from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.core.formatting import Scale, interval_words, plus_minus, signs
from fairtrial.present.charts.svg import tag, words
from fairtrial.text.printable import one_line

_INK, _LEAD, _GREY = "#15171b", "#0a5ca8", "#5f6570"
_HEIGHT, _PADDING, _LETTER = 20, 7, 6.3
_NARROW, _WIDE = "iljtf.,:;'!|()[] ", "mwMW@%"
_LONGEST = 32
_LOPSIDED = 0.1  # share by which the two sides of an interval may differ to be given as one number


def badge_words(board: Leaderboard) -> str:
    """Return the text of a badge: `claude-haiku 83.7 ± 3.9 · leads`."""
    if not board.places:
        return "no score yet"
    first = board.places[0]
    name = one_line(first.label)
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    by = f" {board.metric}" if board.metric else ""
    return f"{name} {_value(board)}{by}{_standing(board)}"


def _value(board: Leaderboard) -> str:
    numbers, scale = board.places[0].aggregate, Scale(board.metric)
    if numbers.ci95 is not None and numbers.mean is not None:
        below, above = numbers.mean - numbers.ci95[0], numbers.ci95[1] - numbers.mean
        if abs(above - below) > _LOPSIDED * (above + below):
            return signs(f"{scale.plain(numbers.mean)} ({interval_words(numbers.ci95, board.metric)})")
    return signs(plus_minus(numbers.mean, numbers.ci95, scale.plain))


def _standing(board: Leaderboard) -> str:
    """Say where the first arm is; nothing if it is alone, or another one is better on the cases that both have."""
    leading = len(board.leading)
    if len(board.places) == 1 or board.places[0].rank > 1:
        return ""
    return " · leads" if leading == 1 else " · tied" if leading == 2 else f" · tie of {leading}"


def badge(board: Leaderboard) -> str:
    """Return the badge as SVG."""
    text, label = badge_words(board), "fairtrial"
    leads = text.endswith(" · leads")
    left = _width(label) + 2 * _PADDING + 18  # room for the mark
    right = _width(text) + 2 * _PADDING
    mark = tag(
        "path", d="M6 6v8M20 6v8M6 10h14", fill="none", stroke="#fff", stroke_width="1.6", stroke_linecap="round"
    )
    return tag(
        "svg",
        tag("title", words(f"{label}: {text}")),
        tag("clipPath", tag("rect", width=_whole(left + right), height=_HEIGHT, rx=4), id="r"),
        tag(
            "g",
            tag("rect", width=_whole(left), height=_HEIGHT, fill=_INK),
            tag("rect", x=_whole(left), width=_whole(right), height=_HEIGHT, fill=_LEAD if leads else _GREY),
            clip_path="url(#r)",
        ),
        mark,
        tag("circle", cx=15, cy=10, r=3.6, fill="#fff"),
        tag(
            "g",
            _text(_PADDING + 18, label),
            _text(left + _PADDING, text),
            fill="#fff",
            font_family="Verdana,DejaVu Sans,Geneva,sans-serif",
            font_size=11,
        ),
        xmlns="http://www.w3.org/2000/svg",
        width=_whole(left + right),
        height=_HEIGHT,
        role="img",
        aria_label=f"{label}: {text}",
    )  # fmt: skip


def _text(x: float, text: str) -> str:
    return tag("text", words(text), x=_whole(x), y=14, textLength=_whole(_width(text)))


def _width(text: str) -> float:
    """Estimate the width of a text; `textLength` makes it true in every font."""
    return sum(_LETTER * (0.6 if letter in _NARROW else 1.5 if letter in _WIDE else 1.1) for letter in text)


def _whole(value: float) -> str:
    return f"{value:.0f}"
