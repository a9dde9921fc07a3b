"""Figures as functions: rows in, an SVG with a text alternative out, for reports and pages.

Drawn by Vega-Lite inside vl-convert: no network, no browser, no build step. Lines and text take the colour of the page
around them, so that light and dark both work. vl-convert ends the whole process where it meets what it did not expect,
so it has a process of its own (`python -m fairtrial.reports.charts`): a line of JSON in, a line of JSON out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from threading import Timer
from typing import IO, Any, Self

import msgspec

from fairtrial.core.errors import NotInstalledError
from fairtrial.core.text import printable

Row = dict[str, Any]
_INK = "currentColor"
# Okabe and Ito's colours, which most kinds of colour blindness can tell apart; all readable on white and on black.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
_WIDTH = 560
_MOST_SECONDS = 120.0  # for one figure; the first takes a second, on a machine with time


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that is yet to be drawn."""

    title: str
    spec: Row
    alt: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: what it shows, in a title, a picture (None where it could not be drawn) and words."""

    title: str
    svg: str | None
    alt: str


def draw(sketches: Iterable[Sketch]) -> list[Figure]:
    """Every figure, all drawn by one process; a figure that breaks it hurts no other."""
    if find_spec("vl_convert") is None:
        raise NotInstalledError("a report with figures", "report")
    with _Pen() as pen:
        return [Figure(title=sketch.title, svg=pen.svg(sketch.spec), alt=sketch.alt) for sketch in sketches]


class _Pen:
    """The process that draws, started when it is needed and again when it broke."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def svg(self, spec: Row) -> str | None:
        process = self._process = self._process or _start()
        assert process.stdin is not None and process.stdout is not None
        clock = Timer(_MOST_SECONDS, process.kill)
        clock.start()
        try:
            process.stdin.write(msgspec.json.encode(_whole(spec)) + b"\n")
            process.stdin.flush()
            svg: str | None = msgspec.json.decode(process.stdout.readline(), type=str | None)
        except (OSError, msgspec.MsgspecError):  # it is gone, perhaps in the middle of a word
            self._end()
            return None
        finally:
            clock.cancel()
        return svg

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _start() -> subprocess.Popen[bytes]:
    # -P: nothing is imported from the folder that somebody happens to be in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fairtrial.reports.charts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for whoever asked
    )


def _serve(specs: IO[bytes], replies: IO[bytes]) -> None:
    """Draw what is asked for until nobody asks any more."""
    import vl_convert

    for line in specs:
        try:
            svg = vl_convert.vegalite_to_svg(msgspec.json.decode(line))
        except Exception:  # whatever it does not like about this one, there may be others
            svg = None
        replies.write(msgspec.json.encode(svg) + b"\n")
        replies.flush()


def forest(title: str, rows: Sequence[Row], *, axis: str, zero: bool = False) -> Sketch:
    """Means with their intervals, one line each: `label`, `value`, and `low` and `high` where there is an interval."""
    known = [row for row in rows if row["value"] is not None]
    low = min([row.get("low") or row["value"] for row in known], default=0.0)
    high = max([row.get("high") or row["value"] for row in known], default=1.0)
    room = 0.03 * ((high - low) or 1.0)
    domain = [min(0.0, low) - room, max(0.0, high) + room] if zero else [low - room, high + room]
    x = {"type": "quantitative", "title": axis, "scale": {"domain": domain, "nice": False, "zero": False}}
    layers: list[Row] = [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "color": PALETTE[0]},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": {"field": "value", **x}},
        },
    ]
    if zero:
        line = {"type": "rule", "color": _INK, "strokeDash": [4, 3], "opacity": 0.6}
        layers.insert(0, {"data": {"values": [{"x": 0}]}, "mark": line, "encoding": {"x": {"field": "x", **x}}})
    for layer in layers[-2:]:
        layer["encoding"]["y"] = _names("label")
        if any("group" in row for row in rows):
            layer["encoding"]["color"] = _verdicts("group")
    spec = {"data": {"values": known}, "height": {"step": 24}, "layer": layers}
    words = "; ".join(_with_interval(row) for row in rows)
    return Sketch(title=title, spec=spec, alt=f"{axis}: {words}")


def _with_interval(row: Row) -> str:
    if row["value"] is None:
        return f"{row['label']} none"
    bounds = "" if row.get("low") is None else f" ({row['low']:.1f} to {row['high']:.1f})"
    return f"{row['label']} {row['value']:.1f}{bounds}"


def scatter(title: str, rows: Sequence[Row], *, x_axis: str, y_axis: str) -> Sketch:
    """Points with names: `label`, `x`, `y`."""
    x = {"field": "x", "type": "quantitative", "title": x_axis}
    y = {"field": "y", "type": "quantitative", "title": y_axis, "scale": {"zero": False, "padding": 12}}
    point = {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1}}
    text = {"mark": {"type": "text", "align": "left", "dx": 8, "color": _INK}, "encoding": {"text": {"field": "label"}}}
    spec = {"data": {"values": list(rows)}, "height": 240, "encoding": {"x": x, "y": y}, "layer": [point, text]}
    words = "; ".join(f"{row['label']} {row['y']:.1f} at {row['x']:g}" for row in rows)
    return Sketch(title=title, spec=spec, alt=f"{y_axis} by {x_axis}: {words}")


def histogram(title: str, rows: Sequence[Row], *, axis: str) -> Sketch:
    """How often what occurs, arm by arm: `label`, `bin`, `count`; bins are tenths of 0–100."""
    x = {"field": "bin", "type": "ordinal", "title": axis, "axis": {"labelAngle": 0}}
    y = {"field": "count", "type": "quantitative", "title": None, "axis": {"tickCount": 3}}
    labels = list(dict.fromkeys(row["label"] for row in rows))
    header = {
        "labelColor": _INK,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelLimit": 400,
        "labelFontWeight": "bold",
    }
    spec = {
        "data": {"values": list(rows)},
        "facet": {"row": {"field": "label", "type": "nominal", "title": None, "sort": labels, "header": header}},
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"width": 400, "height": 60, "mark": "bar", "encoding": {"x": {**x, "sort": None}, "y": y}},
    }
    words = []
    for label in labels:
        counts = ", ".join(f"{row['bin']}: {row['count']}" for row in rows if row["label"] == label and row["count"])
        words.append(f"{label} ({counts})")
    return Sketch(title=title, spec=spec, alt=f"{axis}, number of each: {'; '.join(words)}")


def shares(title: str, rows: Sequence[Row], *, order: Sequence[str]) -> Sketch:
    """Parts of a whole, one bar each: `label`, `part`, `share` (0–1)."""
    scale = {"domain": list(order), "range": list(PALETTE[: len(order)])}
    spec = {
        "data": {"values": list(rows)},
        "height": {"step": 24},
        "mark": "bar",
        "encoding": {
            "y": _names("label"),
            "x": {
                "field": "share",
                "type": "quantitative",
                "title": None,
                "scale": {"domain": [0, 1]},
                "axis": {"format": ".0%"},
            },
            "color": {"field": "part", "type": "nominal", "title": None, "scale": scale},
        },
    }
    words = "; ".join(f"{row['label']} {row['part']} {100 * row['share']:.0f} %" for row in rows)
    return Sketch(title=title, spec=spec, alt=words)


def calibration(title: str, rows: Sequence[Row]) -> Sketch:
    """What a judge gave against what was right, both 0–100: `judge`, `right`, `given`."""
    axis = {"type": "quantitative", "scale": {"domain": [0, 100]}}
    line: Row = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 100, "y": 100}]},
        "mark": {"type": "line", "color": _INK, "strokeDash": [4, 3], "opacity": 0.6},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
    points: Row = {
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.8},
        "encoding": {
            "x": {"field": "right", "title": "right score", **axis},
            "y": {"field": "given", "title": "judge's score", **axis},
            "color": _colours("judge"),
        },
    }
    spec = {"data": {"values": list(rows)}, "width": 300, "height": 300, "layer": [line, points]}
    words = "; ".join(f"{row['judge']} gave {row['given']:.0f} for {row['right']:.0f}" for row in rows)
    return Sketch(title=title, spec=spec, alt=words)


def _names(field: str) -> Row:
    axis = {"labelLimit": 260, "ticks": False, "domain": False, "labelPadding": 8}
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis}


_VERDICTS = {
    "better": "#009e73",
    "worse": "#d55e00",
    "equivalent": "#0072b2",
    "cannot tell": "#7f7f7f",
    "depends on failures": "#e69f00",
}


def _verdicts(field: str) -> Row:
    """A verdict has the same colour in every figure."""
    scale = {"domain": list(_VERDICTS), "range": list(_VERDICTS.values())}
    return {"field": field, "type": "nominal", "title": None, "scale": scale}


def short(name: str, most: int = 40) -> str:
    """A name that fits beside a figure: its middle is left out."""
    name, half = printable(name), (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def _colours(field: str) -> Row:
    return {"field": field, "type": "nominal", "title": None, "sort": None, "scale": {"range": list(PALETTE)}}


def _whole(spec: Row) -> Row:
    """A spec with the look that all figures share."""
    ink = {"labelColor": _INK, "titleColor": _INK}
    config = {
        "background": "transparent",
        "padding": {"left": 16, "right": 16, "top": 5, "bottom": 5},  # fonts differ in width
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "mark": {"color": PALETTE[0]},
        "axis": {**ink, "tickColor": _INK, "domainColor": _INK, "gridColor": _INK, "gridOpacity": 0.15},
        "legend": {**ink, "orient": "bottom"},
        "header": ink,
    }
    return {"width": _WIDTH, **spec, "config": config} if "facet" not in spec else {**spec, "config": config}


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
