"""Plan the next run: how many cases are needed to detect a difference, and where the next dollar helps most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.case_table import Ints
from fairtrial.analyse.compare import with_first
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.planned_looks import WithLooks, planned_looks
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.summary import summarise
from fairtrial.core.errors import FairtrialError
from fairtrial.core.showing import ResultFact, Shown
from fairtrial.stats import (
    Components,
    cases_for_equivalence,
    cases_for_gate,
    power,
    variance_components,
    variance_of_repeats,
)
from fairtrial.stats.distributions import normal_quantile
from fairtrial.stats.mean import Mean
from fairtrial.stats.planning import (
    cases_for_interval_rule,
    cases_like,
    chance_to_pass,
    fewest_cases,
    is_rough,
    smallest_detectable,
)
from fairtrial.stats.units import Measured
from fairtrial.store import opinions, totals

Floats = NDArray[np.float64]
DELTAS = (0.01, 0.02, 0.05, 0.10)
REPEATS = (1, 2, 3, 5, 10)


class PairPower(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms: which difference their common cases can detect, and how many cases would detect more. Numbers are 0–1.

    The cases needed allow for the uncertainty of the standard deviation, estimated from as few cases as there were
    (assurance).
    """

    a: str
    b: str
    count: int
    std_dev: Measured
    case_sd: Measured  # of the differences between cases, without the noise of repeats
    noise_sd: Measured | None  # of a single repeat's difference on a case; None if no case has two repeats
    repeats: float
    detectable: Measured | None  # None if no difference can be detected
    rough: bool  # whether both are rough: few cases account for the spread, and others may show more than these
    cases_needed: list[tuple[float, list[tuple[int, int]]]]  # difference: (repeats, cases), …
    for_margin: list[ForMargin] = []
    with_looks: list[WithLooks] = []  # a plan with looks for every difference, with the repeats that there are


class ForMargin(msgspec.Struct, frozen=True, kw_only=True):
    """Cases needed to show that there is no relevant difference, if there is none and repeats stay the same."""

    margin: Measured
    equivalent: int  # cases that put the interval inside ±margin
    gate: int  # cases that rule out a loss beyond it
    chance: float | None  # that a gate passes with the current cases; None where few of them account for the spread


class Power(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Every pair of arms; of very many, those with the first."""

    sources: list[str]
    beta: float
    alpha: float  # for each pair: 5 % divided by the number of pairs
    pairs: list[PairPower]


def plan_power(
    scores: ScoreTable,
    pairs: Sequence[tuple[ArmScores, ArmScores]],
    *,
    deltas: Sequence[float] = DELTAS,
    margins: Sequence[float] = (),
    beta: float = 0.2,
    looks: int = 0,
) -> Power:
    """Plan from the differences seen so far. With clusters, a case is assumed to count as much as it did here.

    Of very many pairs, those with the first arm are planned, at the level that `compare` gives them.
    """
    alpha = 0.05 / max(1, len(pairs))
    planned = (_pair_power(scores, a, b, deltas, margins, alpha, beta) for a, b in with_first(scores, pairs, SCORE))
    usable = [_looking(scores, pair, looks, alpha, beta) if looks else pair for pair in planned if pair is not None]
    if not usable:
        raise FairtrialError(
            "no two arms have two common cases on which their difference varies: there is nothing to plan from yet"
        )
    return Power(sources=[source.label for source in scores.sources], beta=beta, alpha=alpha, pairs=usable)


def can_plan(scores: ScoreTable, pairs: Sequence[tuple[ArmScores, ArmScores]]) -> bool:
    """Return whether any two arms differ enough from case to case to plan from."""
    return any(_pair_power(scores, a, b, (), (), 0.05, 0.2) is not None for a, b in pairs)


def _pair_power(
    scores: ScoreTable,
    a: ArmScores,
    b: ArmScores,
    deltas: Sequence[float],
    margins: Sequence[float],
    alpha: float,
    beta: float,
) -> PairPower | None:
    evidence = Evidence(scores, a, b, SCORE)
    common, mean = evidence.common, evidence.plain
    if not mean.std_err or mean.count < 2:
        return None
    # What a case contributes to the uncertainty of the mean, including the effect of clusters and weights.
    spread = mean.std_err * math.sqrt(mean.count)
    pilot = max(2, round(mean.freedom) + 1)
    parts = [_components(one, common.keys) for one in (a, b)]
    repeat_variances = [part.repeat for part in parts if part.repeat is not None]
    # The noise variance of a difference of two single answers.
    noise = sum(repeat_variances) if len(repeat_variances) == len(parts) else None
    repeats = len(parts) / sum(1 / part.repeats for part in parts)
    case_variance = max(0.0, spread**2 - sum((part.repeat or 0.0) / part.repeats for part in parts))
    options = REPEATS if noise is not None else (round(repeats),)
    spreads = [(r, math.sqrt(case_variance + (noise or 0.0) / r)) for r in options]
    needed = [
        (delta, [(r, _cases_like(mean, sd, delta, alpha=alpha, beta=beta, pilot=pilot)) for r, sd in spreads])
        for delta in deltas
    ]
    return PairPower(
        a=a.label,
        b=b.label,
        count=mean.count,
        std_dev=spread,
        case_sd=math.sqrt(case_variance),
        noise_sd=None if noise is None else math.sqrt(noise),
        repeats=repeats,
        detectable=smallest_detectable(mean, alpha=alpha, beta=beta),
        rough=is_rough(mean),
        cases_needed=needed,
        for_margin=[
            ForMargin(
                margin=margin,
                equivalent=cases_within(spread, margin, alpha=alpha, beta=beta, pilot=pilot),
                gate=cases_to_pass(spread, margin, alpha=alpha, beta=beta, pilot=pilot),
                chance=chance_to_pass(mean.count, margin, sd=spread, alpha=alpha, pilot=pilot)
                if mean.method == "t"
                else None,
            )
            for margin in margins
        ],
    )


def _looking(scores: ScoreTable, pair: PairPower, looks: int, alpha: float, beta: float) -> PairPower:
    """Return the pair with a plan that has looks, with the repeats that there are."""
    cases = {delta: dict(needed).get(round(pair.repeats), needed[0][1]) for delta, needed in pair.cases_needed}
    plans = planned_looks(scores, (pair.a, pair.b), cases, looks, alpha, beta)
    return msgspec.structs.replace(pair, with_looks=plans)


def _components(arm: ArmScores, rows: Ints) -> Components:
    scores = arm.values[SCORE]
    return variance_of_repeats(scores.counts[rows], scores.sums[rows], arm.spread.squares[rows])


def _cases_like(mean: Mean, sd: float, delta: float, *, alpha: float, beta: float, pilot: int) -> int:
    """Return how many cases like these are needed to detect a difference, with whichever interval applies."""
    planned = max(fewest_cases(alpha), power(sd, delta, alpha=alpha, beta=beta, pilot=pilot))
    return cases_like(mean, planned, sd, delta, alpha=alpha, beta=beta)


def cases_to_see(sd: float, delta: float, *, alpha: float, beta: float, pilot: int) -> int:
    """Return how many cases are needed to detect a difference, with whichever interval applies."""
    z = normal_quantile(1 - beta)
    return cases_for_interval_rule(
        power(sd, delta, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: delta - z * sd / math.sqrt(n),
        lambda mean: mean.clears(0.0, alpha),
    )


def cases_within(sd: float, margin: float, *, alpha: float, beta: float, pilot: int) -> int:
    """Return how many cases put the interval inside ±margin if there is no difference, whichever interval applies."""
    z = normal_quantile(1 - beta / 2)
    return cases_for_interval_rule(
        cases_for_equivalence(sd, margin, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: z * sd / math.sqrt(n),
        lambda mean: mean.clears(-margin, alpha) and mean.clears(margin, alpha),
    )


def cases_to_pass(sd: float, margin: float, *, alpha: float, beta: float = 0.2, pilot: int | None = None) -> int:
    """Return how many cases rule out a loss beyond the margin if there is none, whichever interval applies."""
    z = normal_quantile(1 - beta)
    return cases_for_interval_rule(
        cases_for_gate(sd, margin, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: -z * sd / math.sqrt(n),
        lambda mean: mean.clears(-margin, alpha),
        one_sided=True,
    )


class SpendingStep(msgspec.Struct, frozen=True, kw_only=True):
    """One way to spend the price of one more answer to every case, and the resulting standard error."""

    what: Literal["cases", "repeats", "judgements"]
    more: float  # more cases, repeats per case, or judgements per answer
    std_err: Measured


class Advice(ResultFact, frozen=True, kw_only=True):
    """What reduces an arm's uncertainty most for its price, or why that is not known."""

    subject: ClassVar = "planning"
    what: Literal["nothing_varies", "noise_unknown", "cases", "repeats", "judgements"]


class ArmVariance(msgspec.Struct, frozen=True, kw_only=True):
    """Where one arm's uncertainty comes from. Numbers are 0–1."""

    label: str
    components: Components
    shares: dict[str, float | None]  # None where it is unknown and contained in the source before it
    std_err: Measured
    best_repeats: float | None
    calls: int  # that each step takes, counting the creation of cases
    cost_usd: float | None  # None where prices are unknown
    steps: list[SpendingStep]
    best: Advice = msgspec.field(name="advice")

    @property
    def advice(self) -> str:
        """What to spend the next dollar on."""
        return str(self.best)


class Variance(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """Where the uncertainty of every arm's mean comes from."""

    run_id: str
    arms: list[ArmVariance]


class Prices(NamedTuple):
    """The price of an answer and of a verdict, in USD or, if that is unknown or 0, in calls."""

    answer: float
    verdict: float
    known: bool
    judged: bool


def arm_variances(run: StoredRun, *, case_cost: float = 1.0) -> list[ArmVariance]:
    """Return the variance of every arm of a run; `case_cost` is the cost of creating a case, in answers."""
    spent = totals.arm_totals(run.store, run.id, run.record.scoring)
    judged = totals.judge_totals(run.store, run.id, run.record.scoring)
    errors = {arm.arm: arm.aggregate.std_err for arm in summarise(run).arms}
    components = _arm_components(run, judged=bool(judged))
    variances = []
    for arm in run.plan_arms:
        parts, error = components.get(arm.position), errors[arm.name]
        if parts is not None and parts.cases > 1 and error is not None:
            prices = _prices(spent[arm.position], judged.get(arm.position))
            variances.append(_arm_variance(arm.name, parts, error, prices, case_cost))
    if not variances:
        raise FairtrialError(
            "no arm has scores for two cases: nothing varies yet, however many answers there are to one. Add cases to "
            "the suite and run it again"
        )
    return variances


def _prices(spent: totals.ArmTotals, judged: totals.JudgeTotals | None) -> Prices:
    known = bool(spent.cost.usd) and (judged is None or judged.cost.usd is not None)
    if not known:
        return Prices(1.0, 1.0, False, judged is not None)
    answers = spent.stored - spent.failed
    verdict = judged.cost.known / judged.calls if judged and judged.calls else 0.0
    return Prices(spent.cost.known / max(1, answers), verdict, True, judged is not None)


def _arm_variance(label: str, components: Components, error: float, prices: Prices, case_cost: float) -> ArmVariance:
    answer = prices.answer + (components.judgements * prices.verdict if prices.judged else 0.0)
    budget = components.cases * answer  # one more answer to every case
    steps = _steps(components, error, prices, case_cost, budget, answer)
    return ArmVariance(
        label=label,
        components=components,
        shares=components.shares,
        std_err=error,
        best_repeats=components.best_repeats(case_cost, 1.0),
        calls=round(components.cases * (1 + (components.judgements if prices.judged else 0))),
        cost_usd=budget if prices.known else None,
        steps=steps,
        best=_advice(components, error, min(steps, key=lambda step: step.std_err)),
    )


def _steps(
    components: Components, error: float, prices: Prices, case_cost: float, budget: float, answer: float
) -> list[SpendingStep]:
    """Return the options for one budget: more cases, more answers or more verdicts.

    The standard error is the run's own (with its weights and clusters); the components give the factor by which it
    changes.
    """
    n, r, j = components.cases, components.repeats, components.judgements
    options: list[tuple[Literal["cases", "repeats", "judgements"], float]] = [
        ("cases", budget / ((r + case_cost) * answer))
    ]
    if components.repeat is not None:
        options.append(("repeats", 1.0))
    if prices.judged and components.judge is not None and prices.verdict:
        options.append(("judgements", budget / (n * r * prices.verdict)))
    steps = []
    for what, more in options:
        changed = {"cases": (n + more, r, j), "repeats": (n, r + more, j), "judgements": (n, r, j + more)}[what]
        factor = components.variance(*changed) / components.mean_variance if components.mean_variance else 1.0
        steps.append(SpendingStep(what=what, more=more, std_err=error * float(np.sqrt(factor))))
    return steps


def _advice(components: Components, error: float, best: SpendingStep) -> Advice:
    if components.mean_variance == 0 or error == 0:
        return Advice(what="nothing_varies")
    return Advice(what="noise_unknown" if components.repeat is None else best.what)


def _arm_components(run: StoredRun, *, judged: bool) -> dict[int, Components]:
    """Return the components by arm; cases of weight 0 are shown elsewhere, not counted."""
    scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
    cubes = _judged_cubes(run, scores) if judged else {}
    components = {}
    for position, columns in scores.items():
        counted = np.asarray(columns.weights) > 0
        if position in cubes:
            components[position] = variance_components(cubes[position])
        elif np.any(counted):
            counts, means = np.asarray(columns.repeats)[counted], np.asarray(columns.means)[counted]
            components[position] = variance_of_repeats(counts, counts * means, np.asarray(columns.squares)[counted])
    return components


def _judged_cubes(run: StoredRun, scores: Mapping[int, totals.CaseScores]) -> dict[int, Floats]:
    """Return arms whose scores are the mean of their judgements, as cases × repeats × judgements with NaN for gaps."""
    judgements = opinions.judge_values(run.store, run.id, run.record.scoring)
    by_arm: dict[int, dict[int, dict[int, list[float]]]] = {}
    for answer, value in zip(judgements.answer, judgements.values, strict=True):
        case, arm, repeat = judgements.answers[answer]
        by_arm.setdefault(arm, {}).setdefault(case, {}).setdefault(repeat, []).append(value)
    counted = {arm: _counted_means(columns) for arm, columns in scores.items()}
    return {
        arm: np.stack([_padded([*cases[case].values()], *_shape(cases)) for case in counted[arm]])
        for arm, cases in by_arm.items()
        if counted.get(arm) and _is_mean(cases, counted[arm])
    }


def _counted_means(scores: totals.CaseScores) -> dict[int, float]:
    """Return the mean of every case that counts."""
    columns = zip(scores.positions, scores.means, scores.weights, strict=True)
    return {case: mean for case, mean, weight in columns if weight > 0}


def _is_mean(cases: dict[int, dict[int, list[float]]], means: Mapping[int, float]) -> bool:
    """Return whether scores are their judges' mean; those of a scorer made of scorers, or a panel's median, are not."""
    if not means.keys() <= cases.keys():
        return False
    own = {case: float(np.mean([np.mean(values) for values in repeats.values()])) for case, repeats in cases.items()}
    return all(abs(own[case] - mean) < 1e-6 for case, mean in means.items())


def _shape(cases: dict[int, dict[int, list[float]]]) -> tuple[int, int]:
    repeats = max(len(answers) for answers in cases.values())
    return repeats, max(len(values) for answers in cases.values() for values in answers.values())


def _padded(rows: Sequence[Sequence[float]], count: int, width: int) -> Floats:
    """Return rows of different lengths as one array, padded with NaN."""
    padded = np.full((count, width), np.nan)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded
