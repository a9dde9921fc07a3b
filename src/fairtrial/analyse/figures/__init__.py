"""Figures of results, the same in web pages, reports and notebooks: analysed numbers in, HTML out."""

from fairtrial.analyse.figures.arms import metric_figures, spread_figures, variance_figure
from fairtrial.analyse.figures.boards import board_forest, small_board
from fairtrial.analyse.figures.history import Measurement, history_figure, measured
from fairtrial.analyse.figures.judges import error_history, judge_figure, small_judge_figure
from fairtrial.analyse.figures.leaders import Links, cost_figures, leaders, pair_matrix
from fairtrial.analyse.figures.pairs import difference_histogram, kind_differences
from fairtrial.analyse.figures.parts import case_strips, kind_figures, series_figure
from fairtrial.analyse.figures.style_tables import difference_table, format_steps_table, gaps_table, guide_table
from fairtrial.analyse.figures.styles import answer_gaps, answers_figure, effect_figure, style_figures, style_kinds
from fairtrial.analyse.figures.tools import tools_section

__all__ = [
    "Links",
    "Measurement",
    "answer_gaps",
    "answers_figure",
    "board_forest",
    "case_strips",
    "cost_figures",
    "difference_histogram",
    "difference_table",
    "effect_figure",
    "error_history",
    "format_steps_table",
    "gaps_table",
    "guide_table",
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
    "style_figures",
    "style_kinds",
    "tools_section",
    "variance_figure",
]
