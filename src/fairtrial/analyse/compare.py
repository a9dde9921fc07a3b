"""Which of two is better, or that nobody can tell yet: differences on the same cases, and what qualifies them.

The verdict rests on the item-paired test of `statistics`: cases are the sample, repeats are averaged first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.common import Common
from fairtrial.analyse.comparison import Comparison, Comparisons, Differs, Group, Robustness, Standing, Verdict
from fairtrial.analyse.contestants import SCORE, TAKEN, Contestant, Field, check_metric, choose, enter, sources_of
from fairtrial.analyse.guidance import guidance
from fairtrial.analyse.kinds import kinds_of
from fairtrial.analyse.run import Run
from fairtrial.analyse.series import run_means
from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.core.stopping import case_order
from fairtrial.stats import (
    Bets,
    Equivalence,
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
    wilcoxon,
)

Floats = NDArray[np.float64]
_ALPHA = 0.05
_RESAMPLES = (10_000, 3_000)  # of few cases, and of many: there the interval hardly depends on chance


def compare(
    field: Field,
    pairs: Sequence[tuple[Contestant, Contestant]],
    *,
    metric: str = SCORE,
    margin: float | None = None,
) -> Comparisons:
    """Every pair by its score or a metric, and by every other metric that both have.

    Without a margin, the one that a run was allowed to stop by counts.
    """
    if not pairs:
        raise FairtrialError("it takes two arms to compare: this is one")
    people = list(dict.fromkeys(one for pair in pairs for one in pair))
    check_metric(people, metric)
    if margin is None and metric == SCORE:
        margin = next((one.stop.margin for one in people if one.stop is not None), None)
    chosen = _compared(field, pairs, metric, margin, whole=True)
    if not any(pair.count for pair in chosen):
        raise FairtrialError(_nothing_common(pairs, metric))
    others = dict.fromkeys(
        name for a, b in pairs for name in a.values if name in b.values and name not in (metric, *TAKEN)
    )
    return Comparisons(
        sources=[source.label for source in field.sources],
        run_ids=[run.id for source in field.sources for run in source.runs],
        standings=[_standing(field, one, metric) for one in people],
        pairs=chosen,
        metrics=[found for name in others for found in _compared(field, pairs, name, None, whole=False)],
        metric=metric,
        margin=margin,
        notes=guidance(field, pairs, [(pair.count, pair.units) for pair in chosen], metric),
    )


def compared(run: Run) -> Comparisons | None:
    """Every two arms of a run; None where there is one, or where no two have a scored case in common."""
    field = enter(sources_of(run))
    try:
        return compare(field, choose(field)) if len(run.plan_arms) > 1 else None
    except FairtrialError:
        return None


def _nothing_common(pairs: Sequence[tuple[Contestant, Contestant]], metric: str) -> str:
    empty = list(dict.fromkeys(one.label for pair in pairs for one in pair if not one.values.get(metric)))
    if empty:
        return f"nothing can be compared: {', '.join(empty)} has no {metric or 'score'} yet"
    return "these have no case in common: nothing can be compared"


def _compared(
    field: Field, pairs: Sequence[tuple[Contestant, Contestant]], metric: str, margin: float | None, *, whole: bool
) -> list[Comparison]:
    """Every pair by one metric, adjusted for their number."""
    found = [_Pair(field, a, b, metric, margin, len(pairs)) for a, b in pairs]
    adjusted = iter(holm([pair.p_value for pair in found if pair.p_value is not None]))
    return [pair.comparison(None if pair.p_value is None else next(adjusted), whole=whole) for pair in found]


class _Pair:
    """One comparison in the making."""

    def __init__(
        self, field: Field, a: Contestant, b: Contestant, metric: str, margin: float | None, family: int
    ) -> None:
        self._field, self._a, self._b, self._metric, self._margin, self._family = field, a, b, metric, margin, family
        holder = a if metric in a.scales else b
        self._scale: Scale = holder.scales.get(metric, (None, None))
        self._sign = holder.sign(metric)
        self._common = field.common(a, b, metric)
        self._paired = self._common.difference(self._scale)
        same_run = a.source is b.source and len(a.source.runs) == 1
        self._stop = a.stop if same_run and metric == SCORE and self._common.plain else None
        self._direction = self._paired.difference or 0.0
        if self._stop is not None and self._paired.count:
            self._use_bets()
        self.p_value = p_of(self._paired)

    def _use_bets(self) -> None:
        """Of a run that could stop when it liked, what holds whenever it stopped; what was once sure stays so."""
        bets = self._bets
        above, below = bets.p_above(), bets.p_below()
        surely = min(above, below)
        if max(above, below) < _ALPHA:
            surely = 1.0  # at one time it was sure of one thing, at another of the opposite: nobody can tell
        self._direction = 1.0 if above < below else -1.0
        method = "anytime-valid bets"
        self._paired = msgspec.structs.replace(self._paired, ci95=bets.interval(), p_value=surely, method=method)

    @cached_property
    def _bets(self) -> Bets:
        """The bets that the run itself made: the same stakes, on the differences in the order in which they came."""
        run = self._a.source.runs[0]
        turn = {position: number for number, position in enumerate(case_order(run.id, run.plan.case_count))}
        order = np.argsort([turn[self._a.places[key]] for key in self._common.keys])
        arms = len(run.plan_arms)
        points = () if self._margin is None else (self._margin, -self._margin)
        bets = Bets(alpha=_ALPHA / max(1, arms * (arms - 1) // 2), points=points)
        for value in self._common.d[order]:
            bets.add(float(value))
        return bets

    def comparison(self, adjusted: float | None, *, whole: bool) -> Comparison:
        """Everything about the pair; only what is asked for most where it is not the `whole`."""
        found, common = self._paired, self._common
        within = self._equivalence()
        some = found.count > 0
        better = self._sign * common.d
        ahead, tied = int(np.sum(better > 0)), int(np.sum(better == 0))
        size = found.difference / found.std_dev if found.std_dev and found.std_err and found.difference else None
        spread = found.std_err if self._stop is None else None
        return Comparison(
            a=self._a.label,
            b=self._b.label,
            metric=self._metric,
            scale=self._scale,
            verdict=_verdict(self._sign * self._direction, adjusted, within),
            difference=found.difference,
            ci95=found.ci95,
            p_value=self.p_value,
            p_adjusted=adjusted,
            comparisons=self._family,
            std_err=found.std_err,
            method=found.method,
            mean_a=float(np.average(common.a, weights=common.weights)) if some else None,
            mean_b=float(np.average(common.b, weights=common.weights)) if some else None,
            count=found.count,
            units=found.units,
            ahead=ahead,
            tied=tied,
            only_one=len(self._a.values.get(self._metric, {}).keys() ^ self._b.values.get(self._metric, {}).keys()),
            effect_size=size,
            effect=None if size is None else effect_words(size),
            superiority=superiority(better) if some else None,
            detectable=detectable(spread, 1, alpha=_ALPHA / self._family) if spread else None,
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
        if self._stop is not None:
            bets, margin = self._bets, self._margin
            p = max(bets.p_above(-margin), bets.p_below(margin))
            interval = bets.interval() or (-1.0, 1.0)
            return Equivalence(equivalent=p < _ALPHA, margin=margin, p_value=p, ci90=interval)
        common = self._common
        return _constant_within(self._paired, self._margin) or equivalence(
            common.d, self._margin, common.clusters, common.weights
        )

    def _failures_as_worst(self) -> Paired | None:
        """None where nothing failed (then it is the same), where there is no worst, and where looking was free."""
        if (not self._a.failed and not self._b.failed) or self._scale[0] is None or self._stop is not None:
            return None
        found = self._field.common(self._a, self._b, self._metric, failures=True).difference(self._scale)
        return msgspec.structs.replace(found, p_value=p_of(found))

    @cached_property
    def _kinds(self) -> Mapping[str, dict[str, NDArray[np.bool_]]]:
        return kinds_of([self._field.facts[key] for key in self._common.keys])

    def _groups(self) -> Iterable[Group]:
        for by, values in self._kinds.items():
            found = [(value, self._common.some(chosen).difference(self._scale)) for value, chosen in values.items()]
            p_values = {value: p for value, pair in found if (p := p_of(pair)) is not None}
            adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
            for value, pair in found:
                p = adjusted.get(value)
                yield Group(
                    by=by,
                    value=value,
                    verdict=_verdict(self._sign * (pair.difference or 0.0), p, None),
                    difference=pair.difference,
                    ci95=pair.ci95,
                    p_value=p,
                    count=pair.count,
                )

    def _differs(self) -> Iterable[Differs]:
        common = self._common
        for by, values in self._kinds.items():
            if by == "tag":  # a case may have several, so each is held against the cases without it
                tests = {
                    tag: interaction(common.d, has, common.clusters, common.weights) for tag, has in values.items()
                }
                known = {tag: test for tag, test in tests.items() if test is not None}
                adjusted = holm([test.p_value for test in known.values()])
                for (tag, test), p in zip(known.items(), adjusted, strict=True):
                    yield Differs(by=by, value=tag, p_value=p, test=test)
                continue
            names = np.full(len(common.keys), -1)
            for number, chosen in enumerate(values.values()):
                names[chosen] = number
            some = common.some(names >= 0)
            overall = interaction(some.d, names[names >= 0], some.clusters, some.weights)
            if overall is not None:
                yield Differs(by=by, value="", p_value=overall.p_value, test=overall)

    def _run_means(self) -> RunMeansTest | None:
        """The classical test, where both have several whole runs of the very same cases."""
        sources = [self._a.source, self._b.source]
        if min(len(source.runs) for source in sources) < 2 or self._a.places.keys() != self._b.places.keys():
            return None
        means = [run_means(one.source.runs).get(one.arm.name, []) for one in (self._a, self._b)]
        return run_means_test([value for _, value in means[0]], [value for _, value in means[1]])


def _verdict(direction: float, p: float | None, within: Equivalence | None) -> Verdict:
    if p is not None and p < _ALPHA and direction:
        return "better" if direction > 0 else "worse"
    return "equivalent" if within is not None and within.equivalent else "cannot tell"


def p_of(found: Paired) -> float | None:
    """Where every case differs by the same, no t can be had; but signs can be counted: they were all the same."""
    if found.std_err == 0 and found.units > 1 and found.p_value is None:
        return 2.0 ** (1 - found.units) if found.difference else 1.0
    return found.p_value


def _constant_within(found: Paired, margin: float) -> Equivalence | None:
    """The same for equivalence: no case differed by the margin or more."""
    if found.std_err != 0 or found.units < 2 or found.difference is None:
        return None
    p = 2.0**-found.units
    inside = abs(found.difference) < margin
    return Equivalence(
        equivalent=inside and p < _ALPHA,
        margin=margin,
        p_value=p if inside else 1.0,
        ci90=found.ci95 or (found.difference, found.difference),
    )


def _robustness(common: Common) -> list[Robustness]:
    """Other tests of the same difference; of clusters, their sums or means are the units."""
    weighted = common.weights * common.d
    units, means = weighted, common.d
    if common.clusters is not None:
        codes = np.unique(np.asarray(common.clusters), return_inverse=True)[1]
        units = np.bincount(codes, weights=weighted).astype(np.float64)
        means = units / np.bincount(codes, weights=common.weights)
    exact = " (exact)" if len(units) <= 12 else ""
    resamples = _RESAMPLES[len(units) > 1000]
    boot = bootstrap_ci(common.d, clusters=common.clusters, weights=common.weights, resamples=resamples)
    lines = [
        Robustness(method=f"sign-flip permutation{exact}", p_value=sign_flip(units)),
        Robustness(method="Wilcoxon signed rank", p_value=wilcoxon(means)),
        Robustness(
            method="bootstrap over cases" if common.clusters is None else "bootstrap over clusters", ci95=boot.ci
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
