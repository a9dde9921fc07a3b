"""Figures of results, the same in web pages, reports and notebooks: analysed numbers in, HTML out."""

from fairtrial.present.figures.arms import metric_figures, spread_figures, variance_figure
from fairtrial.present.figures.boards import board_forest, small_board
from fairtrial.present.figures.history import Measurement, history_figure, measured
from fairtrial.present.figures.judges import error_history, judge_figure, small_judge_figure
from fairtrial.present.figures.leaders import Links, cost_figures, leaders, pair_matrix
from fairtrial.present.figures.pairs import difference_histogram, kind_differences
from fairtrial.present.figures.parts import case_strips, kind_figures, series_figure
from fairtrial.present.figures.tools import tools_section
from fairtrial.tracks.optimisation.figure_tables import difference_table, format_steps_table, gaps_table, guide_table
from fairtrial.tracks.optimisation.figures import answer_gaps, answers_figure, effect_figure, style_figures, style_kinds

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
