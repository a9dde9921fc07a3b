"""Summary of a series: how its run means vary, and the case-paired verdicts over all its answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.series import MultiRun, over_runs
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import number


class SeriesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one plan. Scores are 0–1."""

    series_id: str
    suite: str
    run_ids: list[str]
    statuses: list[str]
    arms: dict[str, MultiRun]
    comparisons: Comparisons | None


def summarise_series(runs: Sequence[StoredRun]) -> SeriesSummary:
    """Summarise a series as it is now."""
    first = runs[0].record
    return SeriesSummary(
        series_id=first.series_id or first.id,
        suite=first.suite_name,
        run_ids=[run.id for run in runs],
        statuses=[run.status for run in runs],
        arms=over_runs(runs),
        comparisons=_comparisons(runs),
    )


def _comparisons(runs: Sequence[StoredRun]) -> Comparisons | None:
    scores = read_scores(sources_of(runs))
    pairs = choose(scores)
    try:
        return compare(scores, pairs) if pairs else None
    except FairtrialError:  # no two arms have a scored case in common; the table still shows each arm
        return None


def _bounds(multi: MultiRun) -> str:
    if multi.ci95 is None:
        return "n = 1"
    if multi.std_dev is not None and multi.std_dev < 1e-12:
        return "no run differed"
    return f"{number(multi.ci95[0])} to {number(multi.ci95[1])}"


SERIES_COLUMNS = ("arm", "runs", "mean", "sd", "95 % CI", "min", "max")


def series_cells(arm: str, multi: MultiRun) -> list[str]:
    """Return one arm as a table row, in the order of SERIES_COLUMNS."""
    bounds = _bounds(multi)
    spread = number(multi.std_dev)
    return [arm, str(len(multi.scores)), number(multi.mean), spread, bounds, number(multi.min), number(multi.max)]
