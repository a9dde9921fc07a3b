"""Figures for reports and web pages: each function turns rows into an SVG with a text alternative.

Drawn by Vega-Lite inside vl-convert: no network, no browser, no build step. Lines and text take the colour of the page
around them, so that light and dark themes both work. vl-convert ends the whole process on unexpected input, so it runs
in a separate process (`python -m fairtrial.reports.charts`), which reads and writes one line of JSON per figure.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from threading import Timer
from typing import IO, Any, Self

import msgspec

from fairtrial.core.errors import NotInstalledError
from fairtrial.core.text import printable

Row = dict[str, Any]
_TEXT_COLOUR = "currentColor"
# The colours of Okabe and Ito, distinguishable with most kinds of colour blindness; readable on white and black.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
_WIDTH = 560
_TIME_LIMIT = 120.0  # seconds for one figure; the first takes about a second on an idle machine


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that has not been drawn yet."""

    title: str
    spec: Row
    alt: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure: its title, the SVG (None if it could not be drawn) and a description in words."""

    title: str
    svg: str | None
    alt: str
    missing: bool = False  # whether what draws it is not installed


def draw(sketches: Iterable[Sketch]) -> list[Figure]:
    """Draw all figures in one process; a figure that crashes it does not affect the others.

    Where nothing can be drawn, figures are left to their descriptions in words.
    """
    if find_spec("vl_convert") is None:
        warnings.warn(str(NotInstalledError("drawing figures", "report")), stacklevel=2)
        return [Figure(title=sketch.title, svg=None, alt=sketch.alt, missing=True) for sketch in sketches]
    with _DrawingProcess() as drawing:
        return [Figure(title=sketch.title, svg=drawing.svg(sketch.spec), alt=sketch.alt) for sketch in sketches]


class _DrawingProcess:
    """The process that draws, started on first use and restarted after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def svg(self, spec: Row) -> str | None:
        process = self._process = self._process or _start()
        assert process.stdin is not None and process.stdout is not None
        timeout = Timer(_TIME_LIMIT, process.kill)
        timeout.start()
        try:
            process.stdin.write(msgspec.json.encode(_with_config(spec)) + b"\n")
            process.stdin.flush()
            svg: str | None = msgspec.json.decode(process.stdout.readline(), type=str | None)
        except (OSError, msgspec.MsgspecError):  # the process has died, perhaps in the middle of its reply
            self._end()
            return None
        finally:
            timeout.cancel()
        return svg

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _start() -> subprocess.Popen[bytes]:
    # -P: import nothing from the current folder.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fairtrial.reports.charts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that Ctrl-C reaches only the parent process
    )


def _serve(specs: IO[bytes], replies: IO[bytes]) -> None:
    """Draw each requested figure until the input ends."""
    import vl_convert

    for line in specs:
        try:
            svg = vl_convert.vegalite_to_svg(msgspec.json.decode(line))
        except Exception:  # one bad figure must not stop the others
            svg = None
        replies.write(msgspec.json.encode(svg) + b"\n")
        replies.flush()


def _first(bound: float | None, value: float) -> float:
    return value if bound is None else bound


def forest(title: str, rows: Sequence[Row], *, axis: str, zero: bool = False) -> Sketch:
    """Plot means with intervals, one line per row: `label`, `value`, and `low` and `high` if there is an interval."""
    with_value = [row for row in rows if row["value"] is not None]
    low = min([_first(row.get("low"), row["value"]) for row in with_value], default=0.0)
    high = max([_first(row.get("high"), row["value"]) for row in with_value], default=1.0)
    padding = 0.03 * ((high - low) or 1.0)
    domain = [min(0.0, low) - padding, max(0.0, high) + padding] if zero else [low - padding, high + padding]
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
        line = {"type": "rule", "color": _TEXT_COLOUR, "strokeDash": [4, 3], "opacity": 0.6}
        layers.insert(0, {"data": {"values": [{"x": 0}]}, "mark": line, "encoding": {"x": {"field": "x", **x}}})
    for layer in layers[-2:]:
        layer["encoding"]["y"] = _label_axis("label")
        if any("group" in row for row in rows):
            layer["encoding"]["color"] = _verdict_colours("group")
    spec = {"data": {"values": with_value}, "height": {"step": 24}, "layer": layers}
    words = "; ".join(_with_interval(row) for row in rows)
    return Sketch(title=title, spec=spec, alt=f"{axis}: {words}")


def _with_interval(row: Row) -> str:
    if row["value"] is None:
        return f"{row['label']} none"
    bounds = "" if row.get("low") is None else f" ({row['low']:.1f} to {row['high']:.1f})"
    return f"{row['label']} {row['value']:.1f}{bounds}"


def scatter(title: str, rows: Sequence[Row], *, x_axis: str, y_axis: str) -> Sketch:
    """Plot labelled points: `label`, `x`, `y`."""
    x = {"field": "x", "type": "quantitative", "title": x_axis}
    y = {"field": "y", "type": "quantitative", "title": y_axis, "scale": {"zero": False, "padding": 12}}
    point = {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1}}
    text = {
        "mark": {"type": "text", "align": "left", "dx": 8, "color": _TEXT_COLOUR},
        "encoding": {"text": {"field": "label"}},
    }
    spec = {"data": {"values": list(rows)}, "height": 240, "encoding": {"x": x, "y": y}, "layer": [point, text]}
    words = "; ".join(f"{row['label']} {row['y']:.1f} at {row['x']:g}" for row in rows)
    return Sketch(title=title, spec=spec, alt=f"{y_axis} by {x_axis}: {words}")


def histogram(title: str, rows: Sequence[Row], *, axis: str) -> Sketch:
    """Plot a histogram for each arm: `label`, `bin`, `count`; bins are tenths of 0–100."""
    x = {"field": "bin", "type": "ordinal", "title": axis, "axis": {"labelAngle": 0}}
    y = {"field": "count", "type": "quantitative", "title": None, "axis": {"tickCount": 3}}
    labels = list(dict.fromkeys(row["label"] for row in rows))
    header = {
        "labelColor": _TEXT_COLOUR,
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
    return Sketch(title=title, spec=spec, alt=f"{axis}, counts: {'; '.join(words)}")


def shares(title: str, rows: Sequence[Row], *, order: Sequence[str]) -> Sketch:
    """Plot the parts of a whole, one bar per label: `label`, `part`, `share` (0–1)."""
    scale = {"domain": list(order), "range": list(PALETTE[: len(order)])}
    spec = {
        "data": {"values": list(rows)},
        "height": {"step": 24},
        "mark": "bar",
        "encoding": {
            "y": _label_axis("label"),
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
    """Plot a judge's scores against the right ones, both 0–100: `judge`, `right`, `given`."""
    axis = {"type": "quantitative", "scale": {"domain": [0, 100]}}
    line: Row = {
        "data": {"values": [{"x": 0, "y": 0}, {"x": 100, "y": 100}]},
        "mark": {"type": "line", "color": _TEXT_COLOUR, "strokeDash": [4, 3], "opacity": 0.6},
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


def _label_axis(field: str) -> Row:
    axis = {"labelLimit": 260, "ticks": False, "domain": False, "labelPadding": 8}
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis}


_VERDICTS = {
    "better": "#009e73",
    "worse": "#d55e00",
    "equivalent": "#0072b2",
    "cannot tell": "#7f7f7f",
    "depends on failures": "#e69f00",
}


def _verdict_colours(field: str) -> Row:
    """Return the colour encoding of verdicts, the same in every figure."""
    scale = {"domain": list(_VERDICTS), "range": list(_VERDICTS.values())}
    return {"field": field, "type": "nominal", "title": None, "scale": scale}


def short(name: str, max_length: int = 40) -> str:
    """Shorten a name to fit beside a figure, by cutting its middle."""
    name, half = printable(name), (max_length - 1) // 2
    return name if len(name) <= max_length else f"{name[:half]}…{name[-half:]}"


def _colours(field: str) -> Row:
    return {"field": field, "type": "nominal", "title": None, "sort": None, "scale": {"range": list(PALETTE)}}


def _with_config(spec: Row) -> Row:
    """Return a spec with the style that all figures share."""
    text_colours = {"labelColor": _TEXT_COLOUR, "titleColor": _TEXT_COLOUR}
    config = {
        "background": "transparent",
        "padding": {"left": 16, "right": 16, "top": 5, "bottom": 5},  # room for fonts of different widths
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "mark": {"color": PALETTE[0]},
        "axis": {
            **text_colours,
            "tickColor": _TEXT_COLOUR,
            "domainColor": _TEXT_COLOUR,
            "gridColor": _TEXT_COLOUR,
            "gridOpacity": 0.15,
        },
        "legend": {**text_colours, "orient": "bottom"},
        "header": text_colours,
    }
    return {"width": _WIDTH, **spec, "config": config} if "facet" not in spec else {**spec, "config": config}


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
