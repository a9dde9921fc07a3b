"""A series: run means as they vary, beside the item-paired verdicts over all its answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.series import MultiRun, over_runs
from fairtrial.analyse.wording.runs import number
from fairtrial.core.errors import FairtrialError


class SeriesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one plan. Scores are 0–1."""

    series_id: str
    suite: str
    run_ids: list[str]
    statuses: list[str]
    arms: dict[str, MultiRun]
    comparisons: Comparisons | None


def summarise_series(runs: Sequence[Run]) -> SeriesSummary:
    """The numbers of a series, as they stand now."""
    first = runs[0].record
    return SeriesSummary(
        series_id=first.series_id or first.id,
        suite=first.suite_name,
        run_ids=[run.id for run in runs],
        statuses=[run.status for run in runs],
        arms=over_runs(runs),
        comparisons=_comparisons(runs),
    )


def _comparisons(runs: Sequence[Run]) -> Comparisons | None:
    scores = read_scores(sources_of(runs))
    pairs = choose(scores)
    try:
        return compare(scores, pairs) if pairs else None
    except FairtrialError:  # no two arms have a scored case in common: the table says what each has
        return None


def series_line(arm: str, found: MultiRun) -> str:
    """`Model X: 85.2 ± 3.1 (95% CI: [82.1, 88.3])`, over runs."""
    spread = "" if found.std_dev is None else f" ± {number(found.std_dev)}"
    bounds = _bounds(found)
    return f"{arm}: {number(found.mean)}{spread} (95% CI: {bounds})"


def _bounds(found: MultiRun) -> str:
    if found.ci95 is None:
        return "n = 1"
    if found.std_dev is not None and found.std_dev < 1e-12:
        return "no run differed"
    return f"[{number(found.ci95[0])}, {number(found.ci95[1])}]"


SERIES_COLUMNS = ("arm", "runs", "mean", "± sd", "95% CI", "min", "max")


def series_cells(arm: str, found: MultiRun) -> list[str]:
    """One arm as a row."""
    bounds = _bounds(found)
    spread = number(found.std_dev)
    return [arm, str(len(found.scores)), number(found.mean), spread, bounds, number(found.min), number(found.max)]
