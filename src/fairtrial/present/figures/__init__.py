"""Figures of results, the same in web pages, reports and notebooks: analysed numbers in, HTML out."""

from fairtrial.present.figures.arms import metric_figures, spread_figures, variance_figure
from fairtrial.present.figures.boards import board_forest, small_board
from fairtrial.present.figures.history import Measurement, history_figure, measured
from fairtrial.present.figures.judges import error_history, judge_figure, small_judge_figure
from fairtrial.present.figures.leaders import Links, cost_figures, leaders, pair_matrix
from fairtrial.present.figures.pairs import difference_histogram, kind_differences
from fairtrial.present.figures.parts import case_strips, kind_figures, series_figure
from fairtrial.present.figures.tools import tools_section

__all__ = [
    "Links",
    "Measurement",
    "board_forest",
    "case_strips",
    "cost_figures",
    "difference_histogram",
    "error_history",
    "history_figure",
    "judge_figure",
    "kind_differences",
    "kind_figures",
    "leaders",
    "measured",
    "metric_figures",
    "pair_matrix",
    "series_figure",
    "small_board",
    "small_judge_figure",
    "spread_figures",
    "tools_section",
    "variance_figure",
]
