"""Figures of results, the same in web pages, reports and notebooks: analysed numbers in, HTML out."""

from fairtrial.analyse.figures.boards import board_forest, small_board
from fairtrial.analyse.figures.leaders import Links, cost_figures, leaders, pair_matrix
from fairtrial.analyse.figures.pairs import difference_histogram, kind_differences
from fairtrial.analyse.figures.parts import case_strips, kind_figures, series_figure

__all__ = [
    "Links",
    "board_forest",
    "case_strips",
    "cost_figures",
    "difference_histogram",
    "kind_differences",
    "kind_figures",
    "leaders",
    "pair_matrix",
    "series_figure",
    "small_board",
]
