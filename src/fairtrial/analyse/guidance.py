"""Notes to read before trusting a comparison, shown next to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairtrial.analyse.asked import unfinished_notes
from fairtrial.analyse.comparison import ANYTIME, Comparison
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.questions import repeated_words
from fairtrial.store.repeated import repeated_questions

_FEW_CASES = 20
_FEW_CLUSTERS = 10

Pairs = Sequence[tuple[ArmScores, ArmScores]]


def guidance(scores: ScoreTable, pairs: Pairs, comparisons: Sequence[Comparison], metric: str = SCORE) -> list[str]:
    """Return one note for each caveat."""
    return [
        *_about_cases(scores, [(pair.count, pair.units) for pair in comparisons]),
        *_about_repeated(scores),
        *_about_method(comparisons),
        *_about_weights(scores, pairs, metric),
        *_about_scores(scores, pairs),
        *unfinished_notes(scores.sources),
        *_about_imports(scores),
        *_about_stopping(pairs, comparisons),
        *_about_noise(pairs),
    ]


def _about_cases(scores: ScoreTable, counts: Sequence[tuple[int, int]]) -> Iterator[str]:
    cases = [count for count, _ in counts if count]
    if not cases:
        return
    if not scores.same_cases:
        shown = f"{min(cases)}" if min(cases) == max(cases) else f"{min(cases)} to {max(cases)}"
        yield f"The runs have different cases: they are compared on the {shown} that they have in common."
    if min(cases) == 1:
        yield "One case: what it shows need not be so on others."
    elif min(cases) < _FEW_CASES:
        yield f"Few cases ({min(cases)}): only large differences can be detected."
    clusters = [units for count, units in counts if 0 < units < count]
    if clusters and min(clusters) < _FEW_CLUSTERS:
        yield f"Few clusters ({min(clusters)}): only large differences can be detected."


def _about_repeated(scores: ScoreTable) -> Iterator[str]:
    """Say that questions repeat, once for each plan."""
    plans = {(run.store.path, run.plan.id): run for source in scores.sources for run in source.runs}
    for run in plans.values():
        if repeated := repeated_questions(run.store, run.plan, run.plan_arms):
            yield f"{repeated_words(repeated, run.plan.case_count)}."


def _about_method(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Explain the interval where it is not the usual one."""
    if any(pair.method.startswith("bounded") for pair in comparisons):
        yield (
            "There are few cases, or few of them account for the difference: its interval allows for what other cases "
            "could show (bounded by the scale). Stating the largest difference that a case can show narrows it."
        )
    if any(pair.rough for pair in comparisons):
        yield (
            "Few cases account for this difference, and no scale bounds what others could show: its interval is rough."
        )
    corrected = [pair for pair in comparisons if pair.labels]
    if corrected:
        least = min(pair.labels for pair in corrected)
        yield f"Human labels (on {least} cases) correct the judges' scores of both arms."


def _about_weights(scores: ScoreTable, pairs: Pairs, metric: str) -> Iterator[str]:
    if scores.uneven_facts:
        yield (
            f"{scores.uneven_facts} cases have a different weight or cluster in another run: those of the run named "
            "first are used."
        )
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
            what = "cases" if common.clusters is None else "clusters"
            yield (
                f"A few {what} carry most of the weight: {len(sizes)} count as {effective:.0f} of equal weight; "
                "the interval allows for that."
            )
            return


def _about_scores(scores: ScoreTable, pairs: Pairs) -> Iterator[str]:
    if any(_scored_differently(a, b) for a, b in pairs):
        yield "Not all arms were scored in the same way (different scorer or judge): that may cause the difference."
    a, b = max(pairs, key=lambda pair: abs(pair[0].coverage - pair[1].coverage))
    if abs(a.coverage - b.coverage) > 1e-9:
        low, high = (a, b) if a.coverage < b.coverage else (b, a)
        failures = "; the details say what the failures could change" if a.failures or b.failures else ""
        yield (
            f"Different coverage: {high.label} has a score for {100 * high.coverage:.0f} % of its trials, {low.label} "
            f"for {100 * low.coverage:.0f} %{failures}."
        )


def _scored_differently(a: ArmScores, b: ArmScores) -> bool:
    if a.judges != b.judges and (a.judges or b.judges) and a.source is not b.source:
        return True
    return bool(np.any((a.scorers != b.scorers) & (a.scorers >= 0) & (b.scorers >= 0)))


def _about_imports(scores: ScoreTable) -> Iterator[str]:
    """Say what is not known about runs of other tools."""
    for source in scores.sources:
        for run in source.runs:
            origin = run.record.origin
            if origin is None:
                continue
            unknown = list(origin["missing"])
            if scores.clusters is None and "clusters of cases" not in unknown:
                unknown.append("clusters of cases")
            tool = f"{origin['tool']} {origin['version']}".strip()
            missing = f", which did not record {', '.join(unknown)}" if unknown else ""
            yield f"Run {run.id} was imported from {tool}{missing}."
    if scores.matched:
        yield (
            f"{scores.matched} cases were matched by their question or id alone: the runs write their expected answers "
            "in different ways."
        )


def _about_stopping(pairs: Pairs, comparisons: Sequence[Comparison]) -> Iterator[str]:
    stopping = [
        pair for (a, b), pair in zip(pairs, comparisons, strict=True) if a.stop is not None or b.stop is not None
    ]
    if not stopping:
        return
    if all(pair.method == ANYTIME for pair in stopping):
        yield (
            "A run was allowed to stop as soon as its result was sure: intervals and p are valid whenever it stopped, "
            "and wider for it. Differences and scores are the midpoints of their intervals, so that a difference need "
            "not be that of the two scores. Among runs that stop early it is still too large on average; whether it "
            "differs between kinds of cases is only a hint."
        )
    else:
        yield (
            "A run was allowed to stop as soon as its result was sure, and this comparison cannot account for that "
            "(several runs, weights, or a metric without a scale): the difference is too large on average, and its "
            "interval is too narrow."
        )


def _about_noise(pairs: Pairs) -> Iterator[str]:
    arms = dict.fromkeys(arm for pair in pairs for arm in pair)
    unrepeated = [arm for arm in arms if arm.judges and arm.values[SCORE] and np.all(arm.values[SCORE].counts < 2)]
    if unrepeated:
        yield (
            "Judged by a model, with one answer per case: how much another run would differ is not known; "
            "three repeats or runs measure it."
        )
