"""The style and script of charts, read once; and charts as a part of another page, with the style they need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fairtrial.present.charts.svg import tag, words

FOLDER = Path(__file__).parent / "static"
WRAPPER = "fairtrial-charts"  # the class of the element that charts stand in, in a page that is not ours
_SCOPE = f".{WRAPPER}" * 3  # three times, so that the rules of a notebook for its own tables do not win
_DARK = (
    'body[data-jp-theme-light="false"]',  # JupyterLab
    "body.vscode-dark",
    "body.vscode-high-contrast",
    "html[theme=dark]",  # Colab
)
_LIGHT = ('body[data-jp-theme-light="true"]', "body.vscode-light", "html[theme=light]")


@cache
def style() -> str:
    """Return the stylesheet that pages, reports and sites share."""
    return (FOLDER / "fairtrial.css").read_text("utf-8")


@cache
def scoped_style() -> str:
    """Return what charts need of the stylesheet, for a part of another page: it applies inside WRAPPER only.

    Colours follow the theme of the notebook where it names one, else that of the system.
    """
    css = re.sub(r"/\*(?! -- ).*?\*/", "", style(), flags=re.DOTALL)
    light = _between(css, ":root {", "\n}").replace("color-scheme: light dark;", "")
    dark = _between(css, "@media (prefers-color-scheme: dark) {\n  :root {", "\n  }")
    charts = _between(css, "/* -- charts", "/* -- phone").partition("*/")[2]
    base = (FOLDER / "notebook.css").read_text("utf-8")
    rules = [
        f"{_SCOPE} {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ {_SCOPE} {{ {dark} }} }}",
        f"{_within(_LIGHT)} {{ {light} }}",
        f"{_within(_DARK)} {{ {dark} }}",
        f"{_SCOPE} {{ {base} {charts} }}",
    ]
    return re.sub(r"\s+", " ", "\n".join(rules))


def _within(themes: tuple[str, ...]) -> str:
    return ", ".join(f"{theme} {_SCOPE}" for theme in themes)


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


@cache
def script() -> str:
    """Return the script that shows tooltips, walks marks by keyboard and saves a chart as a picture."""
    return (FOLDER / "charts.js").read_text("utf-8")


def part(title: str, *charts: str, says: Iterable[str] = ()) -> str:
    """Return a title, charts and sentences with the style they need, which changes nothing else on the page."""
    return f"<style>{scoped_style()}</style>" + tag(
        "div",
        tag("p", words(title), class_="title"),
        *charts,
        *(tag("p", words(text), class_="said") for text in says),
        class_=WRAPPER,
    )
