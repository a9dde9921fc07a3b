"""Charts as a part of another page, such as the output of a notebook's cell."""

from __future__ import annotations

from collections.abc import Iterable

from fairtrial.present.charts.style import WRAPPER, scoped_style
from fairtrial.present.charts.svg import tag, words


def part(title: str, *charts: str, says: Iterable[str] = ()) -> str:
    """Return a title, charts and sentences with the style they need, which changes nothing else on the page."""
    return f"<style>{scoped_style()}</style>" + tag(
        "div",
        tag("p", words(title), class_="title"),
        *charts,
        *(tag("p", words(text), class_="said") for text in says),
        class_=WRAPPER,
    )
