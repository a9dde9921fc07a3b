"""What pages want to know of runs: functions of runs, so that they can be worked out anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairtrial.analyse import Run
from fairtrial.analyse.battles import By
from fairtrial.analyse.compare import compare, compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.contestants import SCORE, Contestant, Field, Source, choose, enter, pick, sources_of
from fairtrial.analyse.item_words import worth_of_cases
from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.optimisation import OptimisationReport, optimisation_report
from fairtrial.analyse.rank import Ranking, rank, rank_sets
from fairtrial.analyse.series_summary import SeriesSummary, summarise_series
from fairtrial.analyse.summary import RunSummary

_MOST_CASES = 200


def summary(runs: Sequence[Run]) -> RunSummary:
    """One run in numbers."""
    return runs[0].summary()


class Found(msgspec.Struct):
    """A comparison, or that there is none; and what the cases themselves are worth, in lines."""

    comparisons: Comparisons | None
    cases: list[str] = []


def verdicts(runs: Sequence[Run]) -> Found:
    """Every two arms of one run."""
    found = compared(runs[0])
    return Found(comparisons=found, cases=worth_of_cases(runs[0]) if found else [])


def series(runs: Sequence[Run]) -> SeriesSummary:
    """Several runs of one plan."""
    return summarise_series(runs)


def kinds(runs: Sequence[Run]) -> KindMeans:
    """One run by kind of case."""
    return by_kind(runs[0])


def ranking(runs: Sequence[Run], by: By) -> Ranking:
    """The arms of one run, ranked."""
    return rank(enter(sources_of(runs[0])), by=by)


class RankSets(msgspec.Struct):
    """The best and the worst rank that each arm may have."""

    sets: list[tuple[int, int]]


def standing_ranks(runs: Sequence[Run], arms: list[tuple[str, str]]) -> RankSets:
    """Of arms of several runs, each named with its run."""
    field = enter([Source(run.id, (run,)) for run in runs])
    people = [
        next(one for one in field.contestants if one.source.label == run_id and one.arm.name == arm)
        for run_id, arm in arms
    ]
    return RankSets(sets=rank_sets(field, people, SCORE))


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
    field = enter(sources)
    pairs = choose(field, arms)
    found = compare(field, pairs, metric=metric, margin=margin)
    metrics = dict.fromkeys(name for one in field.contestants for name in one.values if name)
    labels = [one.label for one in field.contestants]
    result = Compared(comparisons=found, labels=labels, metrics=list(metrics), cases=[])
    if len(pairs) != 1:
        return result
    a, b = (pick(field, one.label) for one in pairs[0])
    return msgspec.structs.replace(
        result,
        cases=_differences(field, a, b, metric),
        runs=(a.source.runs[0].id, b.source.runs[0].id),
        arms=(a.arm.position, b.arm.position),
    )


def _differences(field: Field, a: Contestant, b: Contestant, metric: str) -> list[CaseDifference]:
    """The cases on which two arms differ most."""
    common = field.common(a, b, metric)
    cases = [
        CaseDifference(id=field.facts[key].id, a=float(x), b=float(y), place_a=a.places[key], place_b=b.places[key])
        for key, x, y in zip(common.keys, common.a, common.b, strict=True)
    ]
    return sorted(cases, key=lambda case: -abs(case.difference))[:_MOST_CASES]
