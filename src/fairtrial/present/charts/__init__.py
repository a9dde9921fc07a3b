"""Charts for pages, reports and notebooks: HTML and SVG drawn from plain numbers.

Positions are percentages, so one drawing fits every width without a script, follows the colours of its page and prints.
There is no style attribute and no script in a drawing: a strict content security policy allows it. Texts are escaped.
"""

from fairtrial.present.charts.axis import Axis, linear_axis, log_axis
from fairtrial.present.charts.bars import BarRow, balance, bars, histogram, shares
from fairtrial.present.charts.boxes import Box, boxes
from fairtrial.present.charts.confusion import confusion_matrix
from fairtrial.present.charts.curve import Curve, curves, small_curves, sparkline
from fairtrial.present.charts.forest import (
    Forest,
    ForestRow,
    forest,
    mean_axis,
    mean_mark,
    mean_ticks,
    small_forest,
)
from fairtrial.present.charts.heat import HeatRow, strips
from fairtrial.present.charts.matrix import Matrix, MatrixCell, matrix
from fairtrial.present.charts.needed import needed_chart
from fairtrial.present.charts.points import DotRow, Point, agreement, dot_rows, scatter, small_agreement
from fairtrial.present.charts.runs import RunDots, runs_chart
from fairtrial.present.charts.style import FOLDER, part, scoped_style, script, style
from fairtrial.present.charts.trellis import TrellisCell, TrellisRow, trellis

__all__ = [
    "FOLDER",
    "Axis",
    "BarRow",
    "Box",
    "Curve",
    "DotRow",
    "Forest",
    "ForestRow",
    "HeatRow",
    "Matrix",
    "MatrixCell",
    "Point",
    "RunDots",
    "TrellisCell",
    "TrellisRow",
    "agreement",
    "balance",
    "bars",
    "boxes",
    "confusion_matrix",
    "curves",
    "dot_rows",
    "forest",
    "histogram",
    "linear_axis",
    "log_axis",
    "matrix",
    "mean_axis",
    "mean_mark",
    "mean_ticks",
    "needed_chart",
    "part",
    "runs_chart",
    "scatter",
    "scoped_style",
    "script",
    "shares",
    "small_agreement",
    "small_curves",
    "small_forest",
    "sparkline",
    "strips",
    "style",
    "trellis",
]
