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
