"""Notes to read before trusting a comparison, shown next to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairtrial.analyse.asked import ENDED, asked_cases
from fairtrial.analyse.caveats import (
    Caveat,
    CountCaveat,
    DifferentCases,
    ForeignRun,
    HeavyUnits,
    PlainCaveat,
    RecordingFavours,
    RepeatedQuestions,
    TellingWeights,
    UnevenCoverage,
    Unfinished,
)
from fairtrial.analyse.comparison import ANYTIME, Comparison
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable
from fairtrial.analyse.stopping import watched
from fairtrial.store.repeated import repeated_questions

_FEW_CASES = 20
_FEW_CLUSTERS = 10
_CLUSTERS = "clusters of cases"  # what another tool may not have recorded

Pairs = Sequence[tuple[ArmScores, ArmScores]]


def guidance(scores: ScoreTable, pairs: Pairs, comparisons: Sequence[Comparison], metric: str = SCORE) -> list[Caveat]:
    """Return every caveat."""
    return [
        *_about_cases(scores, [(pair.count, pair.units) for pair in comparisons]),
        *about_repeated(scores),
        *_about_method(comparisons),
        *_about_weights(scores, pairs, metric),
        *_about_telling_weights(scores, pairs, metric),
        *_about_scores(scores, pairs),
        *unfinished(scores.sources),
        *_about_imports(scores),
        *_about_stopping(pairs, comparisons),
        *_about_noise(pairs),
    ]


def unfinished(sources: Sequence[RunSource]) -> Iterator[Unfinished]:
    """Yield every run that lacks something, or may change."""
    runs = [run for source in sources for run in source.runs]
    for run in runs:
        if run.status not in ENDED:
            asked = asked_cases(run.store, run.record, run.plan)
            yield Unfinished(run=run.id, status=run.status, asked=asked, alone=len(runs) == 1)


def _about_cases(scores: ScoreTable, counts: Sequence[tuple[int, int]]) -> Iterator[Caveat]:
    cases = [count for count, _ in counts if count]
    if not cases:
        return
    if not scores.same_cases:
        yield DifferentCases(fewest=min(cases), most=max(cases))
    if min(cases) < _FEW_CASES:
        yield CountCaveat(what="few_cases", count=min(cases))
    clusters = [units for count, units in counts if 0 < units < count]
    if clusters and min(clusters) < _FEW_CLUSTERS:
        yield CountCaveat(what="few_clusters", count=min(clusters))


def about_repeated(scores: ScoreTable) -> Iterator[RepeatedQuestions]:
    """Yield of every plan how many cases repeat a question, if any do."""
    plans = {(run.store.path, run.plan.id): run for source in scores.sources for run in source.runs}
    for run in plans.values():
        if repeated := repeated_questions(run.store, run.plan, run.plan_arms):
            yield RepeatedQuestions(repeated=repeated, cases=run.plan.case_count)


def _about_method(comparisons: Sequence[Comparison]) -> Iterator[Caveat]:
    if any(pair.method.startswith("bounded") for pair in comparisons):
        yield PlainCaveat(what="interval_bounded")
    if any(pair.rough for pair in comparisons):
        yield PlainCaveat(what="interval_rough")
    if corrected := [pair.labels for pair in comparisons if pair.labelled_by == "people"]:
        yield CountCaveat(what="corrected_by_labels", count=min(corrected))
    if corrected := [pair.labels for pair in comparisons if pair.labelled_by == "second_judge"]:
        yield CountCaveat(what="corrected_by_second_judge", count=min(corrected))


def _about_weights(scores: ScoreTable, pairs: Pairs, metric: str) -> Iterator[Caveat]:
    if scores.uneven_facts:
        yield CountCaveat(what="weighted_unevenly", count=scores.uneven_facts)
    if scores.clusters is None and len(np.unique(scores.weights)) == 1:
        return
    for a, b in pairs:
        common = scores.common(a, b, metric)
        if common.plain or len(common.keys) < 2:
            continue
        units = common.keys if common.clusters is None else common.clusters
        sizes = np.bincount(np.unique(units, return_inverse=True)[1], weights=common.weights)
        effective = float(sizes.sum() ** 2 / (sizes**2).sum())
        if effective < 0.6 * len(sizes):
            yield HeavyUnits(count=len(sizes), effective=effective, clusters=common.clusters is not None)
            return


def _about_telling_weights(scores: ScoreTable, pairs: Pairs, metric: str) -> Iterator[Caveat]:
    """Yield the first pair whose differences go with the weights, and what equal weights would show."""
    if len(np.unique(scores.weights[scores.weights > 0])) < 2:
        return
    for a, b in pairs:
        common = scores.common(a, b, metric)
        scale = (a if metric in a.scales else b).scales.get(metric, (None, None))
        if not common.mean(scale).telling:
            continue
        equal = common._replace(weights=np.ones_like(common.weights)).difference(scale)
        if equal.difference is not None:
            yield TellingWeights(arms=(a.label, b.label), metric=metric, difference=equal.difference, ci95=equal.ci95)
        return


def _about_scores(scores: ScoreTable, pairs: Pairs) -> Iterator[Caveat]:
    if any(_scored_differently(a, b) for a, b in pairs):
        yield PlainCaveat(what="scored_differently")
    a, b = max(pairs, key=lambda pair: abs(pair[0].coverage - pair[1].coverage))
    if abs(a.coverage - b.coverage) > 1e-9:
        low, high = (a, b) if a.coverage < b.coverage else (b, a)
        yield UnevenCoverage(
            arms=(high.label, low.label),
            shares=(high.coverage, low.coverage),
            failures=bool(a.failures or b.failures),
        )
    a, b = max(pairs, key=lambda pair: abs(_unrecorded(pair[0]) - _unrecorded(pair[1])))
    if _unrecorded(a) != _unrecorded(b):
        less, more = (a, b) if _unrecorded(a) < _unrecorded(b) else (b, a)
        yield RecordingFavours(arms=(less.label, more.label), shares=(_unrecorded(less), _unrecorded(more)))


def _unrecorded(arm: ArmScores) -> float:
    """Return the share of an arm's trials whose agents called what was not recorded."""
    return arm.unrecorded / arm.ended if arm.ended else 0.0


def _scored_differently(a: ArmScores, b: ArmScores) -> bool:
    if a.judges != b.judges and (a.judges or b.judges) and a.source is not b.source:
        return True
    return bool(np.any((a.scorers != b.scorers) & (a.scorers >= 0) & (b.scorers >= 0)))


def _about_imports(scores: ScoreTable) -> Iterator[Caveat]:
    """Yield the runs of other tools, and what is not known about them."""
    for run in (run for source in scores.sources for run in source.runs):
        origin = run.record.origin
        if origin is not None:
            unknown = list(origin["missing"])
            if scores.clusters is None and _CLUSTERS not in unknown:
                unknown.append(_CLUSTERS)
            yield ForeignRun(run=run.id, tool=" ".join((origin["tool"], origin["version"])).strip(), unknown=unknown)
    if scores.matched:
        yield CountCaveat(what="matched_by_question", count=scores.matched)


def _about_stopping(pairs: Pairs, comparisons: Sequence[Comparison]) -> Iterator[Caveat]:
    methods = [
        pair.method for (a, b), pair in zip(pairs, comparisons, strict=True) if watched(a.stop) or watched(b.stop)
    ]
    looks = [pair.look for pair in comparisons if pair.look is not None]
    if (planned := max((look.planned for look in looks), default=1)) > 1:
        yield CountCaveat(what="looks_allowed_for", count=planned)
    if (again := max((look.again for look in looks), default=1)) > 1:
        yield CountCaveat(what="looked_again", count=again)
    if methods:
        yield PlainCaveat(what="stopping_allowed_for" if set(methods) == {ANYTIME} else "stopping_ignored")


def _about_noise(pairs: Pairs) -> Iterator[Caveat]:
    arms = dict.fromkeys(arm for pair in pairs for arm in pair)
    if any(arm.judges and arm.values[SCORE] and np.all(arm.values[SCORE].counts < 2) for arm in arms):
        yield PlainCaveat(what="noise_unknown")
