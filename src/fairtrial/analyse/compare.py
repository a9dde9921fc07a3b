"""Decide which of two arms is better, or that nobody can tell yet, from their differences on the same cases.

Cases are the sample; repeats are averaged first. Each pair has one interval, at the level that Holm's procedure assigns
to it among all pairs. The verdict is read off that interval, and so is everything that depends on the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from fairtrial.analyse.caveats import AgainstFirst, Caveat, PlainCaveat
from fairtrial.analyse.comparison import ComparedArm, Comparison, Comparisons, Silent, SourceName
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.family import (
    Pairs,
    adjusted_p_values,
    interval_levels,
    scored_pairs,
    shared_levels,
    shared_p_values,
)
from fairtrial.analyse.guidance import guidance
from fairtrial.analyse.pair_comparer import PairComparer
from fairtrial.analyse.price import Prices, price_of, stored_prices
from fairtrial.analyse.score_table import (
    SCORE,
    TAKEN,
    ArmScores,
    RunSource,
    ScoreTable,
    check_metric,
    choose,
    read_scores,
    sources_of,
)
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.many_arms import is_large
from fairtrial.stats.mean import ALPHA
from fairtrial.store import outcomes

_MOST_FORESEEN = 10  # arms of very many for which it is worked out what would tell them from the first


def compare(
    scores: ScoreTable,
    pairs: Pairs,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    earlier: ScoreTable | None = None,
    others: Sequence[str] | None = None,
    family: Pairs | None = None,
    detailed: int | None = None,
    alpha: float = ALPHA,
    one_sided: bool = False,
) -> Comparisons:
    """Compare every pair by one metric, and by every other metric that both arms have.

    The default metric is the one that the suites call primary (the score, unless they name another). The default
    margin is the one that a run was allowed to stop by. `largest` is the largest difference that a case can show,
    if that is less than the scale allows. `earlier` is a run of the same arms on more cases; its differences show how
    these cases compare with the rest. `others` limits the other metrics; the default is all of them. `family` are all
    pairs that the verdicts must hold for together, where these pairs were picked from more. Of very many pairs, only
    those with the first arm are compared (`with_first`). Only the first `detailed`
    pairs, by default all, get other tests and kinds of cases, which take nearly all of the time. `alpha` is the error
    level of all pairs together, less than 5 % for one of several looks; `one_sided` if each limit is a claim of its
    own, as in gates.
    """
    if not pairs:
        raise FairtrialError("a comparison needs two arms: there is only one")
    arms = list(dict.fromkeys(arm for pair in pairs for arm in pair))
    metric = scores.primary if metric is None else metric
    check_metric(arms, metric)
    if margin is None and metric == SCORE:
        margin = next((arm.stop.margin for arm in arms if arm.stop is not None), None)
    asked, pairs = pairs, with_first(scores, pairs, metric)
    if len(pairs) < len(asked):
        family = asked
    try:
        comparisons = decided(
            scores,
            pairs,
            [metric],
            margin=margin,
            largest=largest,
            earlier=earlier,
            family=family,
            detailed=detailed,
            alpha=alpha,
            one_sided=one_sided,
            prices=stored_prices(),
        )
    except ValueError as error:
        raise FairtrialError(str(error)) from None
    if not any(pair.count for pair in comparisons):
        raise _nothing_common(pairs, metric)
    return Comparisons(
        sources=[source.label for source in scores.sources],
        run_ids=[run.id for source in scores.sources for run in source.runs],
        standings=[_standing(scores, arm, metric) for arm in arms],
        pairs=comparisons,
        metrics=decided(
            scores,
            pairs,
            other_metrics(asked, metric) if others is None else others,
            primary=False,
            family=asked if len(pairs) < len(asked) else None,
        ),
        metric=metric,
        margin=margin,
        caveats=[
            *([AgainstFirst(pairs=scored_pairs(asked, metric))] if len(pairs) < len(asked) else []),
            *guidance(scores, pairs, comparisons, metric),
            *_unused_earlier(comparisons, earlier),
        ],
        names=[_name(source) for source in scores.sources],
        silent=silent_arms(arms, metric),
        uncompared=[_standing(scores, arm, metric) for arm in _uncompared(scores, arms)],
    )


def with_first(scores: ScoreTable, pairs: Pairs, metric: str) -> Pairs:
    """Return the pairs that are compared where all of these were asked for: of very many, those with the first arm.

    The same arms in several runs are compared each with itself, however many they are.
    """
    if not is_large(scored_pairs(pairs, metric)) or all(a.arm.name == b.arm.name for a, b in pairs):
        return pairs
    first = best_first(scores, dict.fromkeys(arm for pair in pairs for arm in pair), metric)[0]
    return [pair for pair in pairs if first in pair]


def best_first(scores: ScoreTable, arms: Iterable[ArmScores], metric: str) -> list[ArmScores]:
    """Return the arms that have a value of a metric, the best mean first."""
    scored = [arm for arm in arms if arm.values.get(metric)]
    return sorted(scored, key=lambda arm: -arm.sign(metric) * (scores.aggregate(arm, metric).mean or 0.0))


def _name(source: RunSource) -> SourceName:
    """Return the display name of a source: a run by its number, several by what they asked for."""
    run = source.runs[0]
    alone = len(source.runs) == 1 and "@" not in source.label
    return SourceName(
        label=source.label, name=f"run {run.record.number}" if alone else source.label, began=run.record.created_at
    )


def _uncompared(scores: ScoreTable, arms: Sequence[ArmScores]) -> list[ArmScores]:
    """Return the arms that only one source has, where the same arms of several sources are compared."""
    names = {arm.arm.name for arm in arms}
    if len(scores.sources) < 2 or len(names) == len(arms):
        return []
    return [arm for arm in scores.arms if arm.arm.name not in names]


def _unused_earlier(pairs: Sequence[Comparison], earlier: ScoreTable | None) -> list[Caveat]:
    used = earlier is None or any(pair.variance_saved is not None for pair in pairs)
    return [] if used else [PlainCaveat(what="earlier_unused")]


def other_metrics(pairs: Pairs, metric: str) -> list[str]:
    """Return the metrics that both arms of a pair have besides the deciding one, and besides the score in points."""
    arms = dict.fromkeys(arm for pair in pairs for arm in pair)
    own = {arm: [name for name in arm.values if name not in (metric, *TAKEN)] for arm in arms}
    in_points = {arm: {name for name in names if _is_score(arm, name)} for arm, names in own.items()}
    return list(
        dict.fromkeys(
            name
            for a, b in pairs
            for name in own[a]
            if name in b.values and not (name in in_points[a] and name in in_points[b])
        )
    )


def _is_score(arm: ArmScores, metric: str) -> bool:
    """Return whether a metric is the score of every case on a scale of its own, as the quality of 0–100 is."""
    worst, best = arm.scales.get(metric, (None, None))
    if metric == SCORE or worst != 0.0 or best in (None, 1.0):
        return False
    own, score = arm.values[metric], arm.values[SCORE]
    return np.array_equal(own.counts, score.counts) and np.allclose(own.sums, best * score.sums, rtol=1e-12, atol=1e-9)


def compared(run: StoredRun, detailed: int | None = None) -> Comparisons | None:
    """Compare every pair of arms of a run; None if there is one arm, or no two have a scored case in common."""
    scores = read_scores(sources_of(run))
    try:
        return compare(scores, choose(scores), detailed=detailed) if len(run.plan_arms) > 1 else None
    except FairtrialError:
        return None


def _nothing_common(pairs: Pairs, metric: str) -> FairtrialError:
    empty = list(dict.fromkeys(one.label for pair in pairs for one in pair if not one.values.get(metric)))
    if empty:
        return FairtrialError(f"nothing can be compared: {', '.join(empty)} has no {metric or 'score'} yet")
    return FairtrialError("nothing can be compared: the arms have no cases in common")


def decided(
    scores: ScoreTable,
    pairs: Pairs,
    metrics: Sequence[str],
    *,
    margin: float | None = None,
    largest: float | None = None,
    earlier: ScoreTable | None = None,
    primary: bool = True,
    detailed: int | None = None,
    family: Pairs | None = None,
    alpha: float = ALPHA,
    one_sided: bool = False,
    prices: Prices | None = None,
) -> list[Comparison]:
    """Compare every pair by every metric as one family: the verdicts hold for all of them together.

    Other tests, kinds of cases and the like are computed for the first `detailed` pairs; by default for all, but only
    for the primary metric. With `prices`, the pair to decide next says what its verdict cost.
    `family` may be larger than the pairs that are wanted. Where it is very large, only those are computed.
    """
    everything = pairs if family is None else family
    sizes = [scored_pairs(everything, metric) for metric in metrics]
    large = is_large(max(sizes, default=0))
    builders = [
        PairComparer(
            Evidence(
                scores,
                a,
                b,
                metric,
                margin=margin,
                largest=largest,
                earlier=earlier,
                family=len(metrics) * len(everything),
                one_sided=one_sided,
            ),
            margin,
        )
        for metric in metrics
        for a, b in (pairs if large else everything)
    ]
    estimates = [pair.evidence.claimed for pair in builders]
    size = sum(sizes) if large else len(builders)
    levels = shared_levels(estimates, size, alpha) if large else interval_levels(estimates, margin, alpha)
    adjusted = shared_p_values(estimates, size) if large else adjusted_p_values(estimates)
    wanted = {(a.label, b.label) for a, b in pairs}
    shown = [
        one
        for one in zip(builders, levels, adjusted, strict=True)
        if (one[0].evidence.a.label, one[0].evidence.b.label) in wanted
    ]
    whole = (len(shown) if primary else 0) if detailed is None else detailed
    ranked = best_first(scores, dict.fromkeys(arm for pair in pairs for arm in pair), metrics[0]) if primary else []
    foreseen = _foreseen(ranked, large=large) if primary and whole < len(shown) else set()
    found = [
        pair.comparison(
            level,
            p,
            family=size,
            primary=primary,
            whole=number < whole,
            leading=frozenset((pair.evidence.a.label, pair.evidence.b.label)) in foreseen,
        )
        for number, (pair, level, p) in enumerate(shown)
    ]
    if prices is not None and (place := _next_to_decide(ranked, found)) is not None:
        price = price_of(shown[place][0].evidence, shown[place][1], prices)
        found[place] = msgspec.structs.replace(found[place], price=price)
    return found


def _foreseen(ranked: Sequence[ArmScores], *, large: bool) -> set[frozenset[str]]:
    """Return the pairs of the first arm for which it is worked out what would tell the two apart; that takes long."""
    others = ranked[1 : _MOST_FORESEEN + 1 if large else None]
    return {frozenset((ranked[0].label, other.label)) for other in others}


def _next_to_decide(ranked: Sequence[ArmScores], found: Sequence[Comparison]) -> int | None:
    """Return the place of the only pair; of several, that of the first arm and the best that is not apart from it.

    Where all are, that is the second. None where the two best arms are not compared.
    """
    if len(found) == 1:
        return 0
    places = {frozenset((pair.a, pair.b)): place for place, pair in enumerate(found)}
    own = [places.get(frozenset((ranked[0].label, other.label))) for other in ranked[1:]] if ranked else []
    with_first = [place for place in own if place is not None]
    open_ones = (place for place in with_first if found[place].verdict == "cannot tell")
    return next(open_ones, own[0] if own else None)


def _standing(scores: ScoreTable, arm: ArmScores, metric: str) -> ComparedArm:
    return ComparedArm(
        label=arm.label,
        arm=arm.arm.name,
        source=arm.source.label,
        aggregate=scores.aggregate(arm, metric),
        coverage=arm.coverage,
        failed=arm.failures,
        left=arm.left,
    )


def silent_arms(arms: Iterable[ArmScores], metric: str) -> list[Silent]:
    """Return the arms that have no value of a metric."""
    return [
        Silent(label=arm.label, ended=arm.ended, failures=_failures(arm) if arm.failures else {})
        for arm in arms
        if not arm.values.get(metric)
    ]


def _failures(arm: ArmScores) -> dict[str, int]:
    kinds: Counter[str] = Counter()
    for run, _, position in arm.origins:
        kinds.update(outcomes.failure_kinds(run.store, run.id, position))
    return dict(kinds.most_common())
