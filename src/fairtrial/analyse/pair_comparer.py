"""One pair of arms: everything that its differences on common cases say, at the level it has among all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.common import Common
from fairtrial.analyse.comparison import (
    ANYTIME,
    Bound,
    Comparison,
    Differs,
    Failures,
    KindDifference,
    OnThisCase,
    PairedT,
    Robustness,
    Verdict,
    read_verdict,
)
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.family import adjusted_p_values, interval_levels
from fairtrial.analyse.kinds import difficulties_of, in_order, kinds_of
from fairtrial.analyse.score_table import SCORE
from fairtrial.analyse.series import run_means
from fairtrial.analyse.solving import solving_both
from fairtrial.stats import (
    ControlledMean,
    CrossedMean,
    Equivalence,
    RunMeansTest,
    answers_test,
    bootstrap_ci,
    holm,
    interaction,
    mcnemar,
    run_means_test,
    sign_flip,
    superiority,
    wilcoxon,
)
from fairtrial.stats.breakpoint import Breakpoint, breakpoint_of
from fairtrial.stats.distributions import negligible, t_quantile, t_two_sided
from fairtrial.stats.mean import ALPHA, Estimate, Mean, StudentMean
from fairtrial.stats.planning import detectable, is_rough, smallest_detectable

Floats = NDArray[np.float64]
_RESAMPLES = (10_000, 3_000)  # for few and for many cases: with many, the interval hardly depends on chance
_EXACT, _FEWEST_CLUSTERS = 12, 6  # for the sign-flip test


class PairComparer:
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
        level = evidence.nominal(level)
        estimate, common, a, b, metric = evidence.estimate, evidence.common, evidence.a, evidence.b, evidence.metric
        interval = estimate.interval(level)
        verdict = read_verdict(interval, evidence.sign, self._margin)
        failures = self._failures(level) if primary else None
        verdict = _with_failures(verdict, failures)
        better = evidence.sign * common.d
        spread = float(np.std(common.d, ddof=1)) if len(common.keys) > 1 else None
        plain = evidence.plain
        mean_a, mean_b = evidence.means
        could_stop = evidence.anytime or evidence.look is not None  # other tests do not allow for that
        return Comparison(
            a=a.label,
            b=b.label,
            metric=metric,
            scale=evidence.scale,
            verdict=verdict,
            difference=estimate.mean,
            ci95=interval,
            level=1 - level,
            p_value=evidence.claimed.p_value(),
            p_adjusted=adjusted,
            comparisons=family,
            primary=primary,
            look=evidence.look,
            std_err=None if evidence.anytime else getattr(estimate, "std_err", None),
            std_dev=spread,
            method=_method(evidence, plain, level),
            rough=plain.rough and (estimate is plain or isinstance(estimate, CrossedMean)),
            mean_a=mean_a,
            mean_b=mean_b,
            count=plain.count,
            units=plain.units,
            ahead=int(np.sum(better > 0)),
            tied=int(np.sum(better == 0)),
            only_one=int(np.sum(np.isnan(a.means(metric)) != np.isnan(b.means(metric)))),
            effect_size=_effect(evidence, spread),
            superiority=superiority(better) if len(common.keys) else None,
            detectable=_detectable(estimate, level) if whole or (leading and verdict == "cannot tell") else None,
            stated=evidence.stated if isinstance(estimate, Mean | CrossedMean | ControlledMean) else None,
            breakpoint=_breakpoint(estimate, level) if verdict == "cannot tell" and (whole or leading) else None,
            detectable_rough=is_rough(plain) and not evidence.anytime,
            lower_is_better=evidence.sign < 0,
            equivalence=self._equivalence(evidence.claimed, interval),
            failures=failures,
            labels=evidence.labels,
            labelled_by=("people" if evidence.by_people else "second_judge") if evidence.labels else None,
            variance_saved=evidence.saved,
            others=evidence.others,
            wordings=evidence.wordings,
            as_judged=common.difference(evidence.scale) if evidence.labels else None,
            robustness=_robustness(common, fixed_wordings=evidence.wordings > 0)
            if whole and len(common.keys) > 1 and not could_stop
            else [],
            paired_t=None if could_stop else _paired_t(common.d),
            on_this_case=self._on_this_case(family) if plain.count == 1 and not evidence.anytime else None,
            groups=self._every_group(family) if whole else [],
            differs=list(self._differs(family)) if whole else [],
            run_means=self._run_means() if whole and metric == SCORE else None,
            solving=solving_both(a, b, evidence.scores.clusters) if whole and primary else None,
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

    def _every_group(self, family: int) -> list[KindDifference]:
        """Return the difference on each kind of case. A difficulty with few cases is there too, without an interval."""
        found = list(self._groups(family))
        common = self.evidence.common
        levels = difficulties_of(self.evidence.scores.facts, common.keys)
        known = {group.value for group in found if group.by == "difficulty"}
        could_stop = self.evidence.anytime or self.evidence.look is not None
        small = {value: common.some(chosen) for value, chosen in levels.items() if value not in known}
        found += [_small_group(value, some, could_stop=could_stop) for value, some in small.items()]
        attributes = list(self.evidence.scores.facts.attributes)
        places = {value: place for place, value in enumerate(sorted(levels, key=in_order))}
        return sorted(
            found,
            key=lambda one: (attributes.index(one.by), places.get(one.value, 0) if one.by == "difficulty" else 0),
        )

    def _groups(self, family: int) -> Iterable[KindDifference]:
        """Compare the arms on each kind of case.
        The kinds of one attribute are a family, and all attributes of all pairs share 5 %. The mean difference over
        cases is used, whichever estimate decides the pair.
        """
        evidence = self.evidence
        parts = family * max(1, len(self._kinds))
        for by, values in self._kinds.items():
            if evidence.anytime:
                yield from self._groups_whenever_stopped(by, values, parts * len(values))
                continue
            means = [evidence.claimed_on(chosen) for chosen in values.values()]
            adjusted = [None if p is None else min(1.0, p * parts) for p in adjusted_p_values(means)]
            rows = zip(values.items(), means, interval_levels(means, None, ALPHA / parts), adjusted, strict=True)
            for (value, chosen), mean, level, p in rows:
                interval = mean.interval(level)
                yield KindDifference(
                    by=by,
                    value=value,
                    verdict=read_verdict(interval, evidence.sign),
                    difference=mean.mean,
                    ci95=interval,
                    p_value=p,
                    count=int(np.sum(chosen)),
                    paired_t=None if evidence.look else _paired_t(evidence.common.d[chosen]),
                )

    def _groups_whenever_stopped(
        self, by: str, values: Mapping[str, NDArray[np.bool_]], parts: int
    ) -> Iterable[KindDifference]:
        """Compare the arms on kinds of cases of a run that could stop: bets of their own, at one of this many parts."""
        for value, chosen in values.items():
            bets = self.evidence.bets_on(chosen, parts)
            interval = bets.interval() if bets else None
            p = bets.p_value() if bets else None
            yield KindDifference(
                by=by,
                value=value,
                verdict=read_verdict(interval, self.evidence.sign),
                difference=bets.mean if bets else None,
                ci95=interval,
                p_value=None if p is None else min(1.0, p * parts),
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
                    yield Differs(by=by, value=tag, p_value=self._looked(min(1.0, p * parts)), test=test)
                continue
            codes = np.full(len(common.keys), -1)
            for number, chosen in enumerate(values.values()):
                codes[chosen] = number
            labelled = common.some(codes >= 0)
            overall = interaction(labelled.d, codes[codes >= 0], labelled.clusters, labelled.weights)
            if overall is not None:
                p = self._looked(min(1.0, overall.p_value * parts))
                yield Differs(by=by, value="", p_value=p, test=overall)

    def _looked(self, p: float) -> float:
        return p if self.evidence.look is None else self.evidence.look.p_value(p)

    def _on_this_case(self, family: int) -> OnThisCase | None:
        """Compare the answers to the only common case, which are a sample of what the arms say to it."""
        evidence = self.evidence
        row = int(evidence.common.keys[0])
        a, b = (one.answers(evidence.metric, row) for one in (evidence.a, evidence.b))
        test = answers_test(a, b, alpha=ALPHA / family)
        if test is None:
            return None
        verdict = read_verdict(test.ci95, evidence.sign, self._margin)
        return OnThisCase(verdict=verdict, p_adjusted=min(1.0, family * test.p_value), test=test)

    def _run_means(self) -> RunMeansTest | None:
        """Return the classical test on run means, if both arms have several complete runs of the very same cases."""
        a, b = self.evidence.a, self.evidence.b
        if min(len(one.source.runs) for one in (a, b)) < 2 or np.any((a.places < 0) != (b.places < 0)):
            return None
        means = [run_means(one.source.runs).get(one.arm.name, []) for one in (a, b)]
        return run_means_test([value for _, value in means[0]], [value for _, value in means[1]])


def _small_group(value: str, common: Common, *, could_stop: bool) -> KindDifference:
    """Return a difficulty with too few cases for an interval; `could_stop`: where the run could stop early."""
    return KindDifference(
        by="difficulty",
        value=value,
        verdict="cannot tell",
        difference=float(np.average(common.d, weights=common.weights)),
        ci95=None,
        p_value=None,
        count=len(common.keys),
        paired_t=None if could_stop else _paired_t(common.d),
    )


def _paired_t(d: Floats) -> PairedT | None:
    """Return the textbook test of the differences; None with fewer than two, or if all are the same."""
    spread = float(np.std(d, ddof=1)) if len(d) > 1 else 0.0
    if negligible(spread, float(np.abs(d).max(initial=0.0))):
        return None
    error, mean, freedom = spread / math.sqrt(len(d)), float(d.mean()), len(d) - 1
    half = t_quantile(1 - ALPHA / 2, freedom) * error
    t = mean / error
    interval = (mean - half, mean + half)
    return PairedT(difference=mean, ci95=interval, t_statistic=t, freedom=freedom, p_value=t_two_sided(t, freedom))


def _effect(evidence: Evidence, spread: float | None) -> float | None:
    """Return d_z, of the difference that is shown."""
    mean = evidence.estimate.mean if evidence.anytime else evidence.plain.mean
    return (mean or 0.0) / spread if spread and evidence.plain.std_err else None


def _breakpoint(estimate: Estimate, level: float) -> Breakpoint | None:
    return breakpoint_of(estimate, level) if isinstance(estimate, Mean) else None


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


def _method(evidence: Evidence, plain: Mean, level: float) -> str:
    if evidence.anytime:
        return ANYTIME
    if evidence.saved is not None:
        return ControlledMean.method if not evidence.others else f"{evidence.others} other arms as control variate"
    if evidence.labels:
        if evidence.by_people:
            return f"corrected by {evidence.labels} labels"
        return f"corrected by a second judge on {evidence.labels} cases"
    return {"no scores": "no common cases", "n = 1": "one case"}.get(plain.method, _mean_method(plain, level))


def _mean_method(plain: Mean, level: float) -> str:
    return plain.method_words.replace("t", "t, widened", 1) if plain.widened(level) else plain.method_words


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
