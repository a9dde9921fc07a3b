"""Decide which of two arms is better, or that nobody can tell yet, from their differences on the same cases.

Cases are the sample; repeats are averaged first. Each pair has one interval, at the level that Holm's procedure assigns
to it among all pairs. The verdict is read off that interval, and so is everything that depends on the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
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
    CrossedMean,
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
from fairtrial.stats.planning import detectable, smallest_detectable

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[ArmScores, ArmScores]]
_RESAMPLES = (10_000, 3_000)  # for few and for many cases: with many, the interval hardly depends on chance
_SAME = 1e-6  # means that differ by less are the same
_EXACT, _FEWEST_CLUSTERS = 12, 6  # for the sign-flip test


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
) -> Comparisons:
    """Compare every pair by one metric, and by every other metric that both arms have.

    The default metric is the one that the suites call primary (the score, unless they name another). The default
    margin is the one that a run was allowed to stop by. `largest` is the largest difference that a case can show,
    if that is less than the scale allows. `earlier` is a run of the same arms on more cases; its differences show how
    these cases compare with the rest. `others` limits the other metrics; the default is all of them. `family` are all
    pairs that the verdicts must hold for together, where these pairs were picked from more. Only the first `detailed`
    pairs, by default all, get other tests and kinds of cases, which take nearly all of the time. `alpha` is the error
    level of all pairs together, less than 5 % for one of several looks.
    """
    if not pairs:
        raise FairtrialError("a comparison needs two arms: there is only one")
    arms = list(dict.fromkeys(arm for pair in pairs for arm in pair))
    metric = scores.primary if metric is None else metric
    check_metric(arms, metric)
    if margin is None and metric == SCORE:
        margin = next((arm.stop.margin for arm in arms if arm.stop is not None), None)
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
        )
    except ValueError as error:
        raise FairtrialError(str(error)) from None
    if not any(pair.count for pair in comparisons):
        raise FairtrialError(_nothing_common(pairs, metric))
    return Comparisons(
        sources=[source.label for source in scores.sources],
        run_ids=[run.id for source in scores.sources for run in source.runs],
        standings=[_standing(scores, arm, metric) for arm in arms],
        pairs=comparisons,
        metrics=decided(scores, pairs, other_metrics(pairs, metric) if others is None else others, primary=False),
        metric=metric,
        margin=margin,
        notes=[*guidance(scores, pairs, comparisons, metric), *_unused_earlier_note(comparisons, earlier)],
    )


def _unused_earlier_note(pairs: Sequence[Comparison], earlier: ScoreTable | None) -> list[str]:
    if earlier is None or any(pair.variance_saved is not None for pair in pairs):
        return []
    return [
        "The earlier run was not used: it must have both arms and all of these cases and more, without weights or "
        "clusters, and the difference must be one for which a t interval is valid."
    ]


def other_metrics(pairs: Pairs, metric: str) -> list[str]:
    """Return the metrics that both arms of a pair have besides the deciding one."""
    return list(
        dict.fromkeys(name for a, b in pairs for name in a.values if name not in (metric, *TAKEN) and name in b.values)
    )


def compared(run: Run, detailed: int | None = None) -> Comparisons | None:
    """Compare every pair of arms of a run; None if there is one arm, or no two have a scored case in common."""
    scores = read_scores(sources_of(run))
    try:
        return compare(scores, choose(scores), detailed=detailed) if len(run.plan_arms) > 1 else None
    except FairtrialError:
        return None


def _nothing_common(pairs: Pairs, metric: str) -> str:
    empty = list(dict.fromkeys(one.label for pair in pairs for one in pair if not one.values.get(metric)))
    if empty:
        return f"nothing can be compared: {', '.join(empty)} has no {metric or 'score'} yet"
    return "nothing can be compared: the arms have no cases in common"


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
) -> list[Comparison]:
    """Compare every pair by every metric as one family: the verdicts hold for all of them together.

    Other tests, kinds of cases and the like are computed for the first `detailed` pairs; by default for all, but only
    for the primary metric.
    `family` may be larger than the pairs that are wanted.
    """
    everything = pairs if family is None else family
    builders = [
        _PairComparer(
            Evidence(
                scores,
                a,
                b,
                metric,
                margin=margin,
                largest=largest,
                earlier=earlier,
                family=len(metrics) * len(everything),
            ),
            margin,
        )
        for metric in metrics
        for a, b in everything
    ]
    levels = _levels([pair.evidence.estimate for pair in builders], margin, alpha)
    adjusted = _adjusted([pair.evidence.estimate for pair in builders])
    wanted = {(a.label, b.label) for a, b in pairs}
    shown = [
        one
        for one in zip(builders, levels, adjusted, strict=True)
        if (one[0].evidence.a.label, one[0].evidence.b.label) in wanted
    ]
    whole = (len(shown) if primary else 0) if detailed is None else detailed
    best = _best_arms(scores, pairs, metrics[0]) if primary and whole < len(shown) else set()
    return [
        pair.comparison(
            level,
            p,
            family=len(builders),
            primary=primary,
            whole=number < whole,
            leading=not best.isdisjoint((pair.evidence.a.label, pair.evidence.b.label)),
        )
        for number, (pair, level, p) in enumerate(shown)
    ]


def _best_arms(scores: ScoreTable, pairs: Pairs, metric: str) -> set[str]:
    """Return the arm with the best mean, or those that share it."""
    arms = dict.fromkeys(arm for pair in pairs for arm in pair)
    means = {arm.label: scores.aggregate(arm, metric).mean for arm in arms}
    values = {arm.label: arm.sign(metric) * mean for arm in arms if (mean := means[arm.label]) is not None}
    most = max(values.values(), default=0.0)
    return {label for label, value in values.items() if value > most - _SAME}


def _levels(estimates: Sequence[Estimate], margin: float | None, alpha: float = ALPHA) -> list[float]:
    """Return the level of each interval, so that the verdicts read off them have a family-wise error of at most 5 %.

    This holds for the claims of a difference and for the claims of equivalence, each as a family. A pair that Holm's
    procedure finds different gets the level at which it does; every other pair gets the stricter of the two levels, at
    which neither a difference nor an equivalence can be claimed too often.
    """
    family = [estimate for estimate in estimates if not isinstance(estimate, Anytime)]
    difference_levels = _holm_levels([estimate.p_value() for estimate in family], alpha)
    equivalence_levels = (
        _holm_levels([estimate.p_within(margin) for estimate in family], alpha)
        if margin is not None
        else difference_levels
    )
    chosen = iter(
        for_difference
        if (p := estimate.p_value()) is not None and p < for_difference
        else min(for_difference, for_equivalence)
        for estimate, for_difference, for_equivalence in zip(family, difference_levels, equivalence_levels, strict=True)
    )
    return [estimate.level if isinstance(estimate, Anytime) else next(chosen) for estimate in estimates]


def _holm_levels(p_values: Sequence[float | None], alpha: float) -> list[float]:
    levels = iter(holm_levels([p for p in p_values if p is not None], alpha))
    return [alpha if p is None else next(levels) for p in p_values]


def _adjusted(estimates: Sequence[Estimate]) -> list[float | None]:
    """Return Holm's adjusted p-values; bets have already split 5 % among the pairs of their run."""
    family = [estimate.p_value() for estimate in estimates if not isinstance(estimate, Anytime)]
    holm_p_values = iter(holm([p for p in family if p is not None]))
    adjusted: list[float | None] = []
    for estimate in estimates:
        p = estimate.p_value()
        if isinstance(estimate, Anytime):
            adjusted.append(min(1.0, (p or 0.0) * ALPHA / estimate.level))
        else:
            adjusted.append(None if p is None else next(holm_p_values))
    return adjusted


class _PairComparer:
    """Builds the comparison of one pair from its evidence."""

    def __init__(self, evidence: Evidence, margin: float | None) -> None:
        self.evidence, self._margin = evidence, margin

    def comparison(
        self, level: float, adjusted: float | None, *, family: int, primary: bool, whole: bool, leading: bool
    ) -> Comparison:
        """Return the comparison; other tests, kinds of cases and run means are included only if `whole`.

        What would tell two arms apart is included for a pair with the `leading` arm too.
        """
        evidence = self.evidence
        estimate, common, a, b, metric = evidence.estimate, evidence.common, evidence.a, evidence.b, evidence.metric
        interval = estimate.interval(level)
        verdict = read_verdict(interval, evidence.sign, self._margin)
        failures = self._failures(level) if primary else None
        verdict = _with_failures(verdict, failures)
        any_cases = len(common.keys) > 0
        better = evidence.sign * common.d
        spread = float(np.std(common.d, ddof=1)) if len(common.keys) > 1 else None
        plain = evidence.plain
        return Comparison(
            a=a.label,
            b=b.label,
            metric=metric,
            scale=evidence.scale,
            verdict=verdict,
            difference=estimate.mean,
            ci95=interval,
            level=1 - level,
            p_value=estimate.p_value(),
            p_adjusted=adjusted,
            comparisons=family,
            primary=primary,
            std_err=None if evidence.anytime else getattr(estimate, "std_err", None),
            std_dev=spread,
            method=_method(evidence, plain),
            rough=plain.rough and (estimate is plain or isinstance(estimate, CrossedMean)),
            mean_a=float(np.average(common.a, weights=common.weights)) if any_cases else None,
            mean_b=float(np.average(common.b, weights=common.weights)) if any_cases else None,
            count=plain.count,
            units=plain.units,
            ahead=int(np.sum(better > 0)),
            tied=int(np.sum(better == 0)),
            only_one=int(np.sum(np.isnan(a.means(metric)) != np.isnan(b.means(metric)))),
            effect_size=(plain.mean or 0.0) / spread if spread and plain.std_err else None,
            superiority=superiority(better) if any_cases else None,
            detectable=_detectable(estimate, level) if whole or (leading and verdict == "cannot tell") else None,
            equivalence=self._equivalence(estimate, interval),
            failures=failures,
            labels=evidence.labels,
            variance_saved=evidence.saved,
            wordings=evidence.wordings,
            as_judged=common.difference(evidence.scale) if evidence.labels else None,
            robustness=_robustness(common, fixed_wordings=evidence.wordings > 0)
            if whole and len(common.keys) > 1 and not evidence.anytime
            else [],
            groups=list(self._groups(family)) if whole else [],
            differs=list(self._differs(family)) if whole else [],
            run_means=self._run_means() if whole and metric == SCORE else None,
        )

    def _equivalence(self, estimate: Estimate, interval: tuple[float, float] | None) -> Equivalence | None:
        p = None if self._margin is None else estimate.p_within(self._margin)
        if p is None or self._margin is None or interval is None:
            return None
        inside = -self._margin < interval[0] and interval[1] < self._margin
        return Equivalence(equivalent=inside, margin=self._margin, p_value=p)

    def _failures(self, level: float) -> Failures | None:
        """Return the comparison with every failed trial counted against a, and against b."""
        sides = [self._bound(side, level) for side in (1, -1)]
        if sides[0] is None or sides[1] is None:
            return None
        return Failures(against_a=sides[0], against_b=sides[1])

    def _bound(self, against: int, level: float) -> Bound | None:
        extreme = self.evidence.with_failures(against=against, level=level)
        if extreme is None:
            return None
        difference, interval, count = extreme
        verdict = read_verdict(interval, self.evidence.sign, self._margin)
        return Bound(difference=difference, ci95=interval, verdict=verdict, count=count)

    @cached_property
    def _kinds(self) -> Mapping[str, dict[str, NDArray[np.bool_]]]:
        return kinds_of(self.evidence.scores.facts, self.evidence.common.keys)

    def _groups(self, family: int) -> Iterable[Group]:
        """Compare the arms on each kind of case.
        The kinds of one attribute are a family, and all attributes of all pairs share 5 %. The mean difference over
        cases is used, whichever estimate decides the pair.
        """
        evidence = self.evidence
        parts = family * max(1, len(self._kinds))
        for by, values in self._kinds.items():
            means = [evidence.estimate_on(chosen) for chosen in values.values()]
            adjusted = [None if p is None else min(1.0, p * parts) for p in _adjusted(means)]
            rows = zip(values.items(), means, _levels(means, None, ALPHA / parts), adjusted, strict=True)
            for (value, chosen), mean, level, p in rows:
                interval = mean.interval(level)
                yield Group(
                    by=by,
                    value=value,
                    verdict=read_verdict(interval, evidence.sign),
                    difference=mean.mean,
                    ci95=interval,
                    p_value=p,
                    count=int(np.sum(chosen)),
                )

    def _differs(self, family: int) -> Iterable[Differs]:
        """Test whether the difference varies, once per attribute and per tag; all tests of all pairs share 5 %."""
        common = self.evidence.common
        parts = family * max(1, len(self._kinds))
        for by, values in self._kinds.items():
            if by == "tag":  # a case may have several tags, so each tag is tested against the cases without it
                tests = {
                    tag: interaction(common.d, has, common.clusters, common.weights) for tag, has in values.items()
                }
                testable = {tag: test for tag, test in tests.items() if test is not None}
                adjusted = holm([test.p_value for test in testable.values()])
                for (tag, test), p in zip(testable.items(), adjusted, strict=True):
                    yield Differs(by=by, value=tag, p_value=min(1.0, p * parts), test=test)
                continue
            codes = np.full(len(common.keys), -1)
            for number, chosen in enumerate(values.values()):
                codes[chosen] = number
            labelled = common.some(codes >= 0)
            overall = interaction(labelled.d, codes[codes >= 0], labelled.clusters, labelled.weights)
            if overall is not None:
                yield Differs(by=by, value="", p_value=min(1.0, overall.p_value * parts), test=overall)

    def _run_means(self) -> RunMeansTest | None:
        """Return the classical test on run means, if both arms have several complete runs of the very same cases."""
        a, b = self.evidence.a, self.evidence.b
        if min(len(one.source.runs) for one in (a, b)) < 2 or np.any((a.places < 0) != (b.places < 0)):
            return None
        means = [run_means(one.source.runs).get(one.arm.name, []) for one in (a, b)]
        return run_means_test([value for _, value in means[0]], [value for _, value in means[1]])


def _detectable(estimate: Estimate, level: float) -> float | None:
    if isinstance(estimate, CrossedMean):
        over_cases, between = smallest_detectable(estimate.over_cases, alpha=level), estimate.between
        if over_cases is None or not between.variance:
            return over_cases
        count = between.freedom + 1
        return math.hypot(over_cases, detectable(between.std_err * math.sqrt(count), count, alpha=level))
    return smallest_detectable(estimate, alpha=level) if isinstance(estimate, Mean | StudentMean) else None


def _with_failures(verdict: Verdict, failures: Failures | None) -> Verdict:
    """Withdraw a verdict that does not hold at both extremes: it depends on how the failed trials would have scored."""
    if failures is None or verdict == "cannot tell":
        return verdict
    stands = failures.against_a.verdict == failures.against_b.verdict == verdict
    return verdict if stands else "depends on failures"


def _method(evidence: Evidence, plain: Mean) -> str:
    if evidence.anytime:
        return ANYTIME
    if evidence.saved is not None:
        return ControlledMean.method
    if evidence.labels:
        return f"corrected by {evidence.labels} labels"
    return {"no scores": "no common cases", "n = 1": "one case"}.get(plain.method, plain.method_words)


def _robustness(common: Common, *, fixed_wordings: bool) -> list[Robustness]:
    """Return other tests of the same difference; with clusters, cluster sums or means are the units.

    None of them knows of wordings: what they say is about these wordings alone.
    """
    weighted = common.weights * common.d
    units, means = weighted, common.d
    if common.clusters is not None:
        codes = np.unique(common.clusters, return_inverse=True)[1]
        units = np.bincount(codes, weights=weighted).astype(np.float64)
        means = units / np.bincount(codes, weights=common.weights)
    exact = " (exact)" if len(units) <= _EXACT else ""
    resamples = _RESAMPLES[len(units) > 1000]
    boot = bootstrap_ci(common.d, clusters=common.clusters, weights=common.weights, resamples=resamples)
    lines = [Robustness(method="Wilcoxon signed rank", p_value=wilcoxon(means))]
    if common.clusters is None or len(units) >= _FEWEST_CLUSTERS:  # with fewer, it could never reach 5 %
        lines.insert(0, Robustness(method=f"sign-flip permutation{exact}", p_value=sign_flip(units)))
    if boot.ci is not None and boot.ci[1] - boot.ci[0] > 1e-9:  # otherwise nothing varies, and resampling shows nothing
        where = "bootstrap over cases" if common.clusters is None else "bootstrap over clusters"
        lines.append(Robustness(method=where, ci95=boot.ci))
    if common.clusters is None and _binary(common.a) and _binary(common.b):
        lines.append(Robustness(method="McNemar (exact)", p_value=mcnemar(common.a, common.b).p_value))
    if fixed_wordings:
        return [msgspec.structs.replace(one, method=f"{one.method}, for these wordings") for one in lines]
    return lines


def _binary(values: Floats) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _standing(scores: ScoreTable, arm: ArmScores, metric: str) -> Standing:
    return Standing(
        label=arm.label,
        arm=arm.arm.name,
        source=arm.source.label,
        aggregate=scores.aggregate(arm, metric),
        coverage=arm.coverage,
        failed=arm.failures,
    )
