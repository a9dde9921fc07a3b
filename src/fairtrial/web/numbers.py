"""The numbers that pages show about runs, as module-level functions so that any process can compute them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.analyse import Run
from fairtrial.analyse.battles import By
from fairtrial.analyse.compare import compare, compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.optimisation import OptimisationReport, optimisation_report
from fairtrial.analyse.overview import Overview, run_overview
from fairtrial.analyse.rank import Ranking, rank, rank_sets
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, Source, choose, pick, read_scores, sources_of
from fairtrial.analyse.series_summary import SeriesSummary, summarise_series
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.wording.cases import case_findings
from fairtrial.store.browsing import show_counts

_MAX_CASES = 200


def summary(runs: Sequence[Run]) -> RunSummary:
    """Summarise one run."""
    return runs[0].summary()


class RunNumbers(msgspec.Struct):
    """What the page of a run shows first: who leads, all cases, and how many of them each filter shows."""

    summary: RunSummary
    overview: Overview
    kinds: KindMeans
    counts: dict[str, int]


def run_numbers(runs: Sequence[Run]) -> RunNumbers:
    """Return the numbers of one run."""
    run = runs[0]
    return RunNumbers(run.summary(), run_overview(run), by_kind(run), show_counts(run.store, run.record))


class RunDetails(msgspec.Struct):
    """The whole comparison of a run's arms, None if there is none, and notes on how informative its cases are."""

    comparisons: Comparisons | None
    cases: list[str] = []


def run_details(runs: Sequence[Run]) -> RunDetails:
    """Compare every pair of arms of one run in detail."""
    comparisons = compared(runs[0])
    return RunDetails(comparisons=comparisons, cases=case_findings(runs[0]) if comparisons else [])


def series(runs: Sequence[Run]) -> SeriesSummary:
    """Summarise several runs of one plan."""
    return summarise_series(runs)


def kinds(runs: Sequence[Run]) -> KindMeans:
    """Return the means of one run by kind of case."""
    return by_kind(runs[0])


def ranking(runs: Sequence[Run], by: By) -> Ranking:
    """Rank the arms of one run."""
    return rank(read_scores(sources_of(runs[0])), by=by)


class RankSets(msgspec.Struct):
    """The best and the worst rank that each arm can have."""

    sets: list[tuple[int, int]]


def standing_ranks(runs: Sequence[Run], arms: list[tuple[str, str]]) -> RankSets:
    """Return the rank ranges of arms of several runs, each given with its run id."""
    scores = read_scores([Source(run.id, (run,)) for run in runs])
    chosen = [
        next(item for item in scores.arms if item.source.label == run_id and item.arm.name == name)
        for run_id, name in arms
    ]
    return RankSets(sets=rank_sets(scores, chosen, SCORE))


def styles(runs: Sequence[Run], weights: tuple[float, float]) -> OptimisationReport:
    """Report on prompt styles on optimisation problems."""
    return optimisation_report(runs[0], weights)


class CaseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a compared pair: both values and the position of the case in each run."""

    id: str
    a: float
    b: float
    place_a: int
    place_b: int

    @property
    def difference(self) -> float:
        """The value of a minus that of b."""
        return self.a - self.b


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, with the other arms and metrics to choose from."""

    comparisons: Comparisons
    labels: list[str]
    metrics: list[str]
    cases: list[CaseDifference]  # of one pair, the largest differences first
    runs: tuple[str, str] | None = None  # the runs of the pair's arms
    arms: tuple[int, int] | None = None


def comparison(
    runs: Sequence[Run], groups: list[tuple[str, list[str]]], arms: tuple[str, ...], metric: str, margin: float | None
) -> Compared:
    """Compare arms of several sources; each group is a label and the ids of its runs."""
    by_id: dict[str, Any] = {run.id: run for run in runs}
    sources = [Source(label, tuple(by_id[run] for run in members)) for label, members in groups]
    scores = read_scores(sources)
    pairs = choose(scores, arms)
    comparisons = compare(scores, pairs, metric=metric, margin=margin)
    metrics = dict.fromkeys(name for arm in scores.arms for name in arm.values if name)
    labels = [arm.label for arm in scores.arms]
    result = Compared(comparisons=comparisons, labels=labels, metrics=list(metrics), cases=[])
    if len(pairs) != 1:
        return result
    a, b = (pick(scores, arm.label) for arm in pairs[0])
    return msgspec.structs.replace(
        result,
        cases=_differences(scores, a, b, metric),
        runs=(a.source.runs[0].id, b.source.runs[0].id),
        arms=(a.arm.position, b.arm.position),
    )


def _differences(scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str) -> list[CaseDifference]:
    """Return the cases on which two arms differ most, largest difference first."""
    common = scores.common(a, b, metric)
    cases = [
        CaseDifference(id=scores.facts[key].id, a=float(x), b=float(y), place_a=a.places[key], place_b=b.places[key])
        for key, x, y in zip(common.keys, common.a, common.b, strict=True)
    ]
    return sorted(cases, key=lambda case: -abs(case.difference))[:_MAX_CASES]
