"""What pages want to know of runs: functions of runs, so that they can be worked out anywhere."""

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
from fairtrial.analyse.rank import Ranking, rank, rank_sets
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, Source, choose, pick, read_scores, sources_of
from fairtrial.analyse.series_summary import SeriesSummary, summarise_series
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.wording.cases import worth_of_cases

_MOST_CASES = 200


def summary(runs: Sequence[Run]) -> RunSummary:
    """One run in numbers."""
    return runs[0].summary()


class RunVerdicts(msgspec.Struct):
    """A comparison, or that there is none; and what the cases themselves are worth, in lines."""

    comparisons: Comparisons | None
    cases: list[str] = []


def verdicts(runs: Sequence[Run]) -> RunVerdicts:
    """Every two arms of one run."""
    found = compared(runs[0])
    return RunVerdicts(comparisons=found, cases=worth_of_cases(runs[0]) if found else [])


def series(runs: Sequence[Run]) -> SeriesSummary:
    """Several runs of one plan."""
    return summarise_series(runs)


def kinds(runs: Sequence[Run]) -> KindMeans:
    """One run by kind of case."""
    return by_kind(runs[0])


def ranking(runs: Sequence[Run], by: By) -> Ranking:
    """The arms of one run, ranked."""
    return rank(read_scores(sources_of(runs[0])), by=by)


class RankSets(msgspec.Struct):
    """The best and the worst rank that each arm may have."""

    sets: list[tuple[int, int]]


def standing_ranks(runs: Sequence[Run], arms: list[tuple[str, str]]) -> RankSets:
    """Of arms of several runs, each named with its run."""
    scores = read_scores([Source(run.id, (run,)) for run in runs])
    chosen = [
        next(one for one in scores.arms if one.source.label == run_id and one.arm.name == arm) for run_id, arm in arms
    ]
    return RankSets(sets=rank_sets(scores, chosen, SCORE))


def styles(runs: Sequence[Run], weights: tuple[float, float]) -> OptimisationReport:
    """Prompt styles on optimisation problems."""
    return optimisation_report(runs[0], weights)


class CaseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a pair: both values, and where each is to be seen."""

    id: str
    a: float
    b: float
    place_a: int
    place_b: int

    @property
    def difference(self) -> float:
        """a − b."""
        return self.a - self.b


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, and what can be chosen beside it."""

    comparisons: Comparisons
    labels: list[str]
    metrics: list[str]
    cases: list[CaseDifference]  # of one pair, the largest differences first
    runs: tuple[str, str] | None = None  # where its arms are to be seen
    arms: tuple[int, int] | None = None


def comparison(
    runs: Sequence[Run], groups: list[tuple[str, list[str]]], arms: tuple[str, ...], metric: str, margin: float | None
) -> Compared:
    """Arms of sources, each with its label and the ids of its runs."""
    by_id: dict[str, Any] = {run.id: run for run in runs}
    sources = [Source(label, tuple(by_id[run] for run in members)) for label, members in groups]
    scores = read_scores(sources)
    pairs = choose(scores, arms)
    found = compare(scores, pairs, metric=metric, margin=margin)
    metrics = dict.fromkeys(name for one in scores.arms for name in one.values if name)
    labels = [one.label for one in scores.arms]
    result = Compared(comparisons=found, labels=labels, metrics=list(metrics), cases=[])
    if len(pairs) != 1:
        return result
    a, b = (pick(scores, one.label) for one in pairs[0])
    return msgspec.structs.replace(
        result,
        cases=_differences(scores, a, b, metric),
        runs=(a.source.runs[0].id, b.source.runs[0].id),
        arms=(a.arm.position, b.arm.position),
    )


def _differences(scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str) -> list[CaseDifference]:
    """The cases on which two arms differ most."""
    common = scores.common(a, b, metric)
    cases = [
        CaseDifference(id=scores.facts[key].id, a=float(x), b=float(y), place_a=a.places[key], place_b=b.places[key])
        for key, x, y in zip(common.keys, common.a, common.b, strict=True)
    ]
    return sorted(cases, key=lambda case: -abs(case.difference))[:_MOST_CASES]
