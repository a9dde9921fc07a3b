"""The numbers of the pages of prompt styles, as a function that any process can call."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.analyse.run import Run
from fairtrial.tracks.optimisation.analysis import OptimisationReport, optimisation_report


def styles(runs: Sequence[Run], weights: tuple[float, float]) -> OptimisationReport:
    """Report on prompt styles on optimisation problems."""
    return optimisation_report(runs[0], weights)
