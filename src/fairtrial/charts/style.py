"""The stylesheet and the script of charts, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static"


@cache
def style() -> str:
    """Return the stylesheet that pages, reports and sites share."""
    return (FOLDER / "fairtrial.css").read_text("utf-8")


@cache
def script() -> str:
    """Return the script that shows tooltips, walks marks by keyboard and saves a chart as a picture."""
    return (FOLDER / "charts.js").read_text("utf-8")
