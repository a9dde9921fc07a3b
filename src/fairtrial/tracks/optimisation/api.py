"""The verb `styles`, with its async twin."""

from __future__ import annotations

from fairtrial.api.given import AnyRun, open_given
from fairtrial.api.twins import async_twin
from fairtrial.tracks.optimisation.analysis import OptimisationReport, optimisation_report


def styles(
    run: AnyRun = "latest", *, weights: tuple[float, float] = (0.5, 0.5), store: str | None = None
) -> OptimisationReport:
    """Compare the prompt styles of a run on optimisation problems: following, feasibility, gaps and composites.

    `weights` are those of following and of closeness to the optimum in the composites.
    """
    return optimisation_report(open_given(run, store), weights)


astyles = async_twin(styles)
