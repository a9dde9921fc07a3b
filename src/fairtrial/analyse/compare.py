"""Which of two is better, or that nobody can tell yet: differences on the same cases, and what qualifies them.

The verdict rests on the item-paired test of `statistics`: cases are the sample, repeats are averaged first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.common import Common
from fairtrial.analyse.contestants import SCORE, Contestant, Field
from fairtrial.analyse.guidance import guidance
from fairtrial.analyse.series import run_means
from fairtrial.core.errors import FairtrialError
from fairtrial.core.stopping import FEWEST, case_order
from fairtrial.core.suite import StopSpec
from fairtrial.stats import (
    Aggregate,
    Equivalence,
    Interaction,
    Paired,
    RunMeansTest,
    bootstrap_ci,
    detectable,
    effect_words,
    equivalence,
    holm,
    interaction,
    mcnemar,
    run_means_test,
    sign_flip,
    superiority,
    whole_sequence,
    wilcoxon,
)

Floats = NDArray[np.float64]
Verdict = Literal["better", "worse", "equivalent", "cannot tell"]
_ALPHA = 0.05
_RESAMPLES = (10_000, 3_000)  # of few cases, and of many: there the interval hardly depends on chance


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The same question, asked in another way."""

    method: str
    p_value: float | None = None
    ci95: tuple[float, float] | None = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The difference among the cases of one kind; p is adjusted for the kinds of the same attribute."""

    by: str
    value: str
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None
    count: int


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the difference itself differs between kinds of cases."""

    by: str
    value: str  # a tag, held against the cases without it; empty where all kinds are held against each other
    test: Interaction


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms on the cases that both have a score for; differences are a − b. `better` means that a is."""

    a: str
    b: str
    metric: str  # empty for the score
    scale: tuple[float, float]
    verdict: Verdict
    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None
    p_adjusted: float | None
    std_err: float | None
    method: str
    mean_a: float | None
    mean_b: float | None
    count: int
    units: int
    only_one: int  # cases that only one of the two has a score for
    effect_size: float | None
    effect: str | None
    superiority: float | None
    detectable: float | None
    equivalence: Equivalence | None = None
    failures_as_worst: Paired | None = None  # with failed trials counted as the worst score
    robustness: list[Robustness] = []
    groups: list[Group] = []
    differs: list[Differs] = []
    run_means: RunMeansTest | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant by itself."""

    label: str
    arm: str
    source: str
    aggregate: Aggregate
    coverage: float
    failed: int


class Comparisons(msgspec.Struct, frozen=True, kw_only=True):
    """All that was compared; p-values are adjusted over `pairs`."""

    sources: list[str]
    run_ids: list[str]
    standings: list[Standing]
    pairs: list[Comparison]
    metrics: list[Comparison]
    metric: str
    margin: float | None
    notes: list[str]


def compare(
    field: Field,
    pairs: Sequence[tuple[Contestant, Contestant]],
    *,
    metric: str = SCORE,
    margin: float | None = None,
) -> Comparisons:
    """Every pair by its score or a metric, and by every other metric that both have."""
    if not pairs:
        raise FairtrialError("it takes two arms to compare: this is one")
    _check_metric(pairs, metric)
    chosen = _compared(field, pairs, metric, margin, whole=True)
    if not any(pair.count for pair in chosen):
        raise FairtrialError("these have no case in common: nothing can be compared")
    others = dict.fromkeys(name for a, b in pairs for name in a.values if name in b.values and name != metric)
    people = dict.fromkeys(one for pair in pairs for one in pair)
    return Comparisons(
        sources=[source.label for source in field.sources],
        run_ids=[run.id for source in field.sources for run in source.runs],
        standings=[_standing(field, one, metric) for one in people],
        pairs=chosen,
        metrics=[found for name in others for found in _compared(field, pairs, name, None, whole=False)],
        metric=metric,
        margin=margin,
        notes=guidance(field, pairs, [(pair.count, pair.units) for pair in chosen]),
    )


def _check_metric(pairs: Sequence[tuple[Contestant, Contestant]], metric: str) -> None:
    known = dict.fromkeys(name for pair in pairs for one in pair for name in one.values if name != SCORE)
    if metric != SCORE and metric not in known:
        there = f"there are: {', '.join(known)}" if known else "these runs have none beside the score"
        raise FairtrialError(f"no arm has a metric `{metric}`; {there}")


def _compared(
    field: Field, pairs: Sequence[tuple[Contestant, Contestant]], metric: str, margin: float | None, *, whole: bool
) -> list[Comparison]:
    """Every pair by one metric, adjusted for their number."""
    found = [_Pair(field, a, b, metric, margin, len(pairs)) for a, b in pairs if metric in a.values.keys() & b.values]
    adjusted = iter(holm([pair.p_value for pair in found if pair.p_value is not None]))
    return [pair.comparison(None if pair.p_value is None else next(adjusted), whole=whole) for pair in found]


class _Pair:
    """One comparison in the making."""

    def __init__(
        self, field: Field, a: Contestant, b: Contestant, metric: str, margin: float | None, family: int
    ) -> None:
        self._field, self._a, self._b, self._metric, self._margin, self._family = field, a, b, metric, margin, family
        self._scale = a.scales[metric]
        self._common = field.common(a, b, metric)
        self._paired = self._common.difference(self._scale)
        self._stop = a.stop if a.source is b.source and len(a.source.runs) == 1 else None
        self._ordered = self._common.d
        if self._stop is not None:
            self._ordered = self._as_asked()
            self._paired = _anytime(self._paired, self._ordered, self._stop)
        self.p_value = _p_value(self._paired)

    def comparison(self, adjusted: float | None, *, whole: bool) -> Comparison:
        """Everything about the pair; only what is asked for most where it is not the `whole`."""
        found, common = self._paired, self._common
        within = self._equivalence()
        some = found.count > 0
        size = found.difference / found.std_dev if found.std_dev and found.difference is not None else None
        return Comparison(
            a=self._a.label,
            b=self._b.label,
            metric=self._metric,
            scale=self._scale,
            verdict=_verdict(found.difference, adjusted, within),
            difference=found.difference,
            ci95=found.ci95,
            p_value=self.p_value,
            p_adjusted=adjusted,
            std_err=found.std_err,
            method=found.method,
            mean_a=float(np.average(common.a, weights=common.weights)) if some else None,
            mean_b=float(np.average(common.b, weights=common.weights)) if some else None,
            count=found.count,
            units=found.units,
            only_one=len(self._a.values[self._metric].keys() ^ self._b.values[self._metric].keys()),
            effect_size=size,
            effect=None if size is None else effect_words(size),
            superiority=superiority(common.d) if some else None,
            detectable=detectable(found.std_err, 1, alpha=_ALPHA / self._family) if found.std_err else None,
            equivalence=within,
            failures_as_worst=self._failures_as_worst() if whole else None,
            robustness=_robustness(common) if whole and found.count > 1 and self._stop is None else [],
            groups=list(self._groups()) if whole else [],
            differs=list(self._differs()) if whole else [],
            run_means=self._run_means() if whole and self._metric == SCORE else None,
        )

    def _equivalence(self) -> Equivalence | None:
        if self._margin is None or not self._paired.count:
            return None
        common = self._common
        if self._stop is not None:
            return _anytime_within(self._ordered, self._margin, self._stop)
        return _constant_within(self._paired, self._margin) or equivalence(
            common.d, self._margin, common.clusters, common.weights
        )

    def _as_asked(self) -> Floats:
        """The differences in the order in which their cases were asked."""
        run = self._a.source.runs[0]
        turn = {position: number for number, position in enumerate(case_order(run.id, run.plan.case_count))}
        turns = [turn[self._field.facts[key].position] for key in self._common.keys]
        return np.asarray(self._common.d[np.argsort(turns)], dtype=np.float64)

    def _failures_as_worst(self) -> Paired | None:
        """None where nothing failed: then it is the same."""
        if not self._a.failed and not self._b.failed:
            return None
        return self._field.common(self._a, self._b, self._metric, failures=True).difference(self._scale)

    def _groups(self) -> Iterable[Group]:
        for by, values in self._kinds().items():
            found = [(value, self._common.some(chosen).difference(self._scale)) for value, chosen in values.items()]
            p_values = {value: p for value, pair in found if (p := _p_value(pair)) is not None}
            adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
            for value, pair in found:
                p = adjusted.get(value)
                verdict = _verdict(pair.difference, p, None)
                yield Group(
                    by=by,
                    value=value,
                    verdict=verdict,
                    difference=pair.difference,
                    ci95=pair.ci95,
                    p_value=p,
                    count=pair.count,
                )

    def _differs(self) -> Iterable[Differs]:
        common = self._common
        for by, values in self._kinds().items():
            if by == "tag":  # a case may have several, so each is held against the cases without it
                for value, chosen in values.items():
                    test = interaction(common.d, chosen, common.clusters, common.weights)
                    if test is not None:
                        yield Differs(by=by, value=value, test=test)
                continue
            names = np.full(len(common.keys), "", dtype=object)
            for value, chosen in values.items():
                names[chosen] = value
            known = names != ""
            some = common.some(known)
            test = interaction(some.d, names[known].astype(str), some.clusters, some.weights)
            if test is not None:
                yield Differs(by=by, value="", test=test)

    def _kinds(self) -> Mapping[str, dict[str, NDArray[np.bool_]]]:
        """Attributes that tell the common cases apart: {attribute: {value: which cases}}."""
        cases = [self._field.facts[key] for key in self._common.keys]
        columns: dict[str, list[tuple[str, ...]]] = {
            "category": [(case.category,) if case.category else () for case in cases],
            "difficulty": [(case.difficulty,) if case.difficulty else () for case in cases],
            "tag": [case.tags for case in cases],
        }
        found = {}
        for by, column in columns.items():
            values = dict.fromkeys(value for row in column for value in row)
            chosen = {value: np.asarray([value in row for row in column], dtype=bool) for value in values}
            chosen = {value: which for value, which in chosen.items() if not which.all()}
            if chosen:
                found[by] = chosen
        return found

    def _run_means(self) -> RunMeansTest | None:
        """The classical test, where both have several runs."""
        if min(len(one.source.runs) for one in (self._a, self._b)) < 2:
            return None
        means = [run_means(one.source.runs).get(one.arm.name, []) for one in (self._a, self._b)]
        return run_means_test([value for _, value in means[0]], [value for _, value in means[1]])


def _verdict(difference: float | None, p: float | None, within: Equivalence | None) -> Verdict:
    if p is not None and p < _ALPHA and difference:
        return "better" if difference > 0 else "worse"
    return "equivalent" if within is not None and within.equivalent else "cannot tell"


def _p_value(found: Paired) -> float | None:
    """Where every case differs by the same, no t can be had; but signs can be counted: they were all the same."""
    if found.std_err == 0 and found.units > 1:
        return 2.0 ** (1 - found.units) if found.difference else 1.0
    return found.p_value


def _constant_within(found: Paired, margin: float) -> Equivalence | None:
    """The same for equivalence: no case differed by the margin or more."""
    if found.std_err != 0 or found.units < 2 or found.difference is None:
        return None
    p = 2.0**-found.units
    inside = abs(found.difference) < margin
    same = (found.difference, found.difference)
    return Equivalence(equivalent=inside and p < _ALPHA, margin=margin, p_value=p if inside else 1.0, ci90=same)


def _anytime(found: Paired, d: Floats, stop: StopSpec) -> Paired:
    """Of a run that could stop when it liked, what holds whenever it stopped; what was once sure stays so."""
    if found.count < 2:
        return found
    sequence = whole_sequence(d, best_at=stop.best_at, first=FEWEST)
    method = "anytime-valid sequence"
    return msgspec.structs.replace(found, ci95=sequence.interval, p_value=sequence.p_value, method=method)


def _anytime_within(d: Floats, margin: float, stop: StopSpec) -> Equivalence | None:
    """Both one-sided questions, asked of the sequence: is the difference above −margin, and below margin?"""
    if len(d) < 2:
        return None
    found = whole_sequence(d, best_at=stop.best_at, first=FEWEST)
    sides = [whole_sequence(d + shift, best_at=stop.best_at, first=FEWEST).p_value for shift in (-margin, margin)]
    p = max((side for side in sides if side is not None), default=1.0) if abs(found.mean) < margin else 1.0
    assert found.interval is not None
    return Equivalence(equivalent=p < _ALPHA, margin=margin, p_value=p, ci90=found.interval)


def _robustness(common: Common) -> list[Robustness]:
    """Other tests of the same difference; of clusters, their sums or means are the units."""
    weighted = common.weights * common.d
    units, means = weighted, common.d
    if common.clusters is not None:
        codes = np.unique(np.asarray(common.clusters), return_inverse=True)[1]
        units = np.bincount(codes, weights=weighted).astype(np.float64)
        means = units / np.bincount(codes, weights=common.weights)
    exact = " (exact)" if len(units) <= 12 else ""
    lines = [
        Robustness(method=f"sign-flip permutation{exact}", p_value=sign_flip(units)),
        Robustness(method="Wilcoxon signed rank", p_value=wilcoxon(means)),
        Robustness(
            method="bootstrap over cases" if common.clusters is None else "bootstrap over clusters",
            ci95=bootstrap_ci(
                common.d, clusters=common.clusters, weights=common.weights, resamples=_RESAMPLES[len(units) > 1000]
            ).ci,
        ),
    ]
    if common.clusters is None and _binary(common.a) and _binary(common.b):
        lines.append(Robustness(method="McNemar (exact)", p_value=mcnemar(common.a, common.b).p_value))
    return lines


def _binary(values: Floats) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _standing(field: Field, one: Contestant, metric: str) -> Standing:
    return Standing(
        label=one.label,
        arm=one.arm.name,
        source=one.source.label,
        aggregate=field.aggregate(one, metric),
        coverage=one.coverage,
        failed=sum(one.failed.values()),
    )
