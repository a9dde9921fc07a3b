"""Which of two is better, or that nobody can tell yet: differences on the same cases, and what qualifies them.

Cases are the sample, repeats are averaged first. Each pair has one interval, at a level that Holm's procedure gives it
among all pairs; its verdict is read off that interval, and so is everything that rests on the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.common import Common
from fairtrial.analyse.comparison import (
    ANYTIME,
    Bound,
    Comparison,
    Comparisons,
    Differs,
    Failures,
    Group,
    Robustness,
    Standing,
    Verdict,
    read_verdict,
)
from fairtrial.analyse.evidence import Anytime, Evidence
from fairtrial.analyse.guidance import guidance
from fairtrial.analyse.kinds import kinds_of
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import (
    SCORE,
    TAKEN,
    ArmScores,
    ScoreTable,
    check_metric,
    choose,
    read_scores,
    sources_of,
)
from fairtrial.analyse.series import run_means
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import (
    ControlledMean,
    Equivalence,
    RunMeansTest,
    bootstrap_ci,
    holm,
    holm_levels,
    interaction,
    mcnemar,
    run_means_test,
    sign_flip,
    superiority,
    wilcoxon,
)
from fairtrial.stats.mean import ALPHA, Estimate, Mean, StudentMean
from fairtrial.stats.planning import detectable_again

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[ArmScores, ArmScores]]
_RESAMPLES = (10_000, 3_000)  # of few cases, and of many: there the interval hardly depends on chance
_EXACT, _FEWEST_CLUSTERS = 12, 6  # of sign flips


def compare(
    scores: ScoreTable,
    pairs: Pairs,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    earlier: ScoreTable | None = None,
    others: Sequence[str] | None = None,
) -> Comparisons:
    """Every pair by what the suites call primary (the score, unless they say otherwise) or by a metric, and by every
    other metric that both have.

    Without a margin, the one that a run was allowed to stop by counts. `largest` is the largest difference that a case
    can show, where that is less than the scale allows. `earlier` is a run of the same arms on more cases, whose
    differences tell how these cases lie among them. `others` are the metrics to look at besides: all, unless named.
    """
    if not pairs:
        raise FairtrialError("it takes two arms to compare: this is one")
    arms = list(dict.fromkeys(one for pair in pairs for one in pair))
    metric = scores.primary if metric is None else metric
    check_metric(arms, metric)
    if margin is None and metric == SCORE:
        margin = next((one.stop.margin for one in arms if one.stop is not None), None)
    try:
        chosen = decided(scores, pairs, [metric], margin=margin, largest=largest, earlier=earlier)
    except ValueError as error:
        raise FairtrialError(str(error)) from None
    if not any(pair.count for pair in chosen):
        raise FairtrialError(_nothing_common(pairs, metric))
    return Comparisons(
        sources=[source.label for source in scores.sources],
        run_ids=[run.id for source in scores.sources for run in source.runs],
        standings=[_standing(scores, one, metric) for one in arms],
        pairs=chosen,
        metrics=decided(scores, pairs, other_metrics(pairs, metric) if others is None else others, primary=False),
        metric=metric,
        margin=margin,
        notes=[*guidance(scores, pairs, chosen, metric), *_why_unused(chosen, earlier)],
    )


def _why_unused(pairs: Sequence[Comparison], earlier: ScoreTable | None) -> list[str]:
    if earlier is None or any(pair.variance_saved is not None for pair in pairs):
        return []
    return [
        "The earlier run was not used: it must have both arms, all of these cases and more, without weights and "
        "clusters, and the difference must be one that t holds for."
    ]


def other_metrics(pairs: Pairs, metric: str) -> list[str]:
    """What both arms of a pair have beside the metric that decides."""
    return list(
        dict.fromkeys(name for a, b in pairs for name in a.values if name in b.values and name not in (metric, *TAKEN))
    )


def compared(run: Run) -> Comparisons | None:
    """Every two arms of a run; None where there is one, or where no two have a scored case in common."""
    scores = read_scores(sources_of(run))
    try:
        return compare(scores, choose(scores)) if len(run.plan_arms) > 1 else None
    except FairtrialError:
        return None


def _nothing_common(pairs: Pairs, metric: str) -> str:
    empty = list(dict.fromkeys(one.label for pair in pairs for one in pair if not one.values.get(metric)))
    if empty:
        return f"nothing can be compared: {', '.join(empty)} has no {metric or 'score'} yet"
    return "these have no case in common: nothing can be compared"


def decided(
    scores: ScoreTable,
    pairs: Pairs,
    metrics: Sequence[str],
    *,
    margin: float | None = None,
    largest: float | None = None,
    earlier: ScoreTable | None = None,
    primary: bool = True,
    qualified: bool | None = None,
) -> list[Comparison]:
    """Every pair by every metric, as one family: what is claimed of any of them holds for all of them together.

    Other tests, kinds of cases and the like are worked out where they are asked for; else, for the primary metric.
    """
    found = [
        _Pair(
            Evidence(
                scores, a, b, metric, margin=margin, largest=largest, earlier=earlier, family=len(metrics) * len(pairs)
            ),
            margin,
        )
        for metric in metrics
        for a, b in pairs
    ]
    levels = _levels([pair.evidence.estimate for pair in found], margin)
    adjusted = _adjusted([pair.evidence.estimate for pair in found])
    return [
        pair.comparison(level, p, family=len(found), primary=primary, whole=primary if qualified is None else qualified)
        for pair, level, p in zip(found, levels, adjusted, strict=True)
    ]


def _levels(estimates: Sequence[Estimate], margin: float | None, alpha: float = ALPHA) -> list[float]:
    """At which level each interval is drawn, so that verdicts read off them are false in 5 % of samples at most: any
    of the differences among them, and any of the equivalences.

    What Holm lets differ is drawn at the level at which it does; the rest at the level at which neither claim can be
    one too many.
    """
    family = [one for one in estimates if not isinstance(one, Anytime)]
    differ = _holm_levels([one.p_value() for one in family], alpha)
    same = _holm_levels([one.p_within(margin) for one in family], alpha) if margin is not None else differ
    chosen = iter(
        apart if (p := one.p_value()) is not None and p < apart else min(apart, within)
        for one, apart, within in zip(family, differ, same, strict=True)
    )
    return [one.level if isinstance(one, Anytime) else next(chosen) for one in estimates]


def _holm_levels(p_values: Sequence[float | None], alpha: float) -> list[float]:
    known = iter(holm_levels([p for p in p_values if p is not None], alpha))
    return [alpha if p is None else next(known) for p in p_values]


def _adjusted(estimates: Sequence[Estimate]) -> list[float | None]:
    """Holm's p-values; bets share 5 % among the pairs of their run beforehand."""
    family = [one.p_value() for one in estimates if not isinstance(one, Anytime)]
    known = iter(holm([p for p in family if p is not None]))
    found: list[float | None] = []
    for one in estimates:
        p = one.p_value()
        if isinstance(one, Anytime):
            found.append(min(1.0, (p or 0.0) * ALPHA / one.level))
        else:
            found.append(None if p is None else next(known))
    return found


class _Pair:
    """One comparison in the making."""

    def __init__(self, evidence: Evidence, margin: float | None) -> None:
        self.evidence, self._margin = evidence, margin

    def comparison(
        self, level: float, adjusted: float | None, *, family: int, primary: bool, whole: bool
    ) -> Comparison:
        """Everything about the pair; what qualifies the verdict only where it is the `whole`."""
        known = self.evidence
        found, common, a, b, metric = known.estimate, known.common, known.a, known.b, known.metric
        interval = found.interval(level)
        verdict = read_verdict(interval, known.sign, self._margin)
        failures = self._failures(level) if primary else None
        some = len(common.keys) > 0
        better = known.sign * common.d
        spread = float(np.std(common.d, ddof=1)) if len(common.keys) > 1 else None
        plain = known.plain
        return Comparison(
            a=a.label,
            b=b.label,
            metric=metric,
            scale=known.scale,
            verdict=_with_failures(verdict, failures),
            difference=found.mean,
            ci95=interval,
            level=1 - level,
            p_value=found.p_value(),
            p_adjusted=adjusted,
            comparisons=family,
            primary=primary,
            std_err=None if known.anytime else getattr(found, "std_err", None),
            std_dev=spread,
            method=_method(known, plain),
            rough=plain.rough and found is plain,
            mean_a=float(np.average(common.a, weights=common.weights)) if some else None,
            mean_b=float(np.average(common.b, weights=common.weights)) if some else None,
            count=plain.count,
            units=plain.units,
            ahead=int(np.sum(better > 0)),
            tied=int(np.sum(better == 0)),
            only_one=len(a.values.get(metric, {}).keys() ^ b.values.get(metric, {}).keys()),
            effect_size=(plain.mean or 0.0) / spread if spread and plain.std_err else None,
            superiority=superiority(better) if some else None,
            detectable=detectable_again(found, alpha=level) if isinstance(found, Mean | StudentMean) else None,
            equivalence=self._equivalence(found, interval),
            failures=failures,
            labels=known.labels,
            variance_saved=known.saved,
            as_judged=common.difference(known.scale) if known.labels else None,
            robustness=_robustness(common) if whole and len(common.keys) > 1 and not known.anytime else [],
            groups=list(self._groups(family)) if whole else [],
            differs=list(self._differs(family)) if whole else [],
            run_means=self._run_means() if whole and metric == SCORE else None,
        )

    def _equivalence(self, found: Estimate, interval: tuple[float, float] | None) -> Equivalence | None:
        p = None if self._margin is None else found.p_within(self._margin)
        if p is None or self._margin is None or interval is None:
            return None
        inside = -self._margin < interval[0] and interval[1] < self._margin
        return Equivalence(equivalent=inside, margin=self._margin, p_value=p)

    def _failures(self, level: float) -> Failures | None:
        """What is left of the verdict if everything that failed went one way."""
        sides = [self._bound(side, level) for side in (1, -1)]
        if sides[0] is None or sides[1] is None:
            return None
        return Failures(against_a=sides[0], against_b=sides[1])

    def _bound(self, against: int, level: float) -> Bound | None:
        known = self.evidence.with_failures(against=against, level=level)
        if known is None:
            return None
        difference, interval, count = known
        verdict = read_verdict(interval, self.evidence.sign, self._margin)
        return Bound(difference=difference, ci95=interval, verdict=verdict, count=count)

    @cached_property
    def _kinds(self) -> Mapping[str, dict[str, NDArray[np.bool_]]]:
        return kinds_of([self.evidence.scores.facts[key] for key in self.evidence.common.keys])

    def _groups(self, family: int) -> Iterable[Group]:
        """The kinds of one attribute are a family, and all attributes of all pairs share 5 %; they are scored as they
        are, whatever decides the pair."""
        known = self.evidence
        parts = family * max(1, len(self._kinds))
        for by, values in self._kinds.items():
            found = [known.common.some(chosen).mean(known.scale) for chosen in values.values()]
            adjusted = [None if p is None else min(1.0, p * parts) for p in _adjusted(found)]
            rows = zip(values, found, _levels(found, None, ALPHA / parts), adjusted, strict=True)
            for value, mean, level, p in rows:
                interval = mean.interval(level)
                yield Group(
                    by=by,
                    value=value,
                    verdict=read_verdict(interval, known.sign),
                    difference=mean.mean,
                    ci95=interval,
                    p_value=p,
                    count=mean.count,
                )

    def _differs(self, family: int) -> Iterable[Differs]:
        """Each attribute is tested once, each tag for itself; all of them, of all pairs, share 5 %."""
        common = self.evidence.common
        parts = family * max(1, len(self._kinds))
        for by, values in self._kinds.items():
            if by == "tag":  # a case may have several, so each is held against the cases without it
                tests = {
                    tag: interaction(common.d, has, common.clusters, common.weights) for tag, has in values.items()
                }
                known = {tag: test for tag, test in tests.items() if test is not None}
                adjusted = holm([test.p_value for test in known.values()])
                for (tag, test), p in zip(known.items(), adjusted, strict=True):
                    yield Differs(by=by, value=tag, p_value=min(1.0, p * parts), test=test)
                continue
            names = np.full(len(common.keys), -1)
            for number, chosen in enumerate(values.values()):
                names[chosen] = number
            some = common.some(names >= 0)
            overall = interaction(some.d, names[names >= 0], some.clusters, some.weights)
            if overall is not None:
                yield Differs(by=by, value="", p_value=min(1.0, overall.p_value * parts), test=overall)

    def _run_means(self) -> RunMeansTest | None:
        """The classical test, where both have several whole runs of the very same cases."""
        a, b = self.evidence.a, self.evidence.b
        if min(len(one.source.runs) for one in (a, b)) < 2 or a.places.keys() != b.places.keys():
            return None
        means = [run_means(one.source.runs).get(one.arm.name, []) for one in (a, b)]
        return run_means_test([value for _, value in means[0]], [value for _, value in means[1]])


def _with_failures(verdict: Verdict, failures: Failures | None) -> Verdict:
    """A claim that does not stand at both bounds is none: it depends on what the failures would have been."""
    if failures is None or verdict == "cannot tell":
        return verdict
    stands = failures.against_a.verdict == failures.against_b.verdict == verdict
    return verdict if stands else "depends on failures"


def _method(known: Evidence, plain: Mean) -> str:
    if known.anytime:
        return ANYTIME
    if known.saved is not None:
        return ControlledMean.method
    if known.labels:
        return f"corrected by {known.labels} labels"
    return {"no scores": "no common cases", "n = 1": "one case"}.get(plain.method, plain.method_words)


def _robustness(common: Common) -> list[Robustness]:
    """Other tests of the same difference; of clusters, their sums or means are the units."""
    weighted = common.weights * common.d
    units, means = weighted, common.d
    if common.clusters is not None:
        codes = np.unique(np.asarray(common.clusters), return_inverse=True)[1]
        units = np.bincount(codes, weights=weighted).astype(np.float64)
        means = units / np.bincount(codes, weights=common.weights)
    exact = " (exact)" if len(units) <= _EXACT else ""
    resamples = _RESAMPLES[len(units) > 1000]
    boot = bootstrap_ci(common.d, clusters=common.clusters, weights=common.weights, resamples=resamples)
    lines = [Robustness(method="Wilcoxon signed rank", p_value=wilcoxon(means))]
    if common.clusters is None or len(units) >= _FEWEST_CLUSTERS:  # fewer could not disagree with anything
        lines.insert(0, Robustness(method=f"sign-flip permutation{exact}", p_value=sign_flip(units)))
    if boot.ci is not None and boot.ci[1] - boot.ci[0] > 1e-9:  # else nothing varies, and resampling tells nothing
        where = "bootstrap over cases" if common.clusters is None else "bootstrap over clusters"
        lines.append(Robustness(method=where, ci95=boot.ci))
    if common.clusters is None and _binary(common.a) and _binary(common.b):
        lines.append(Robustness(method="McNemar (exact)", p_value=mcnemar(common.a, common.b).p_value))
    return lines


def _binary(values: Floats) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _standing(scores: ScoreTable, one: ArmScores, metric: str) -> Standing:
    return Standing(
        label=one.label,
        arm=one.arm.name,
        source=one.source.label,
        aggregate=scores.aggregate(one, metric),
        coverage=one.coverage,
        failed=sum(one.failed.values()),
    )
