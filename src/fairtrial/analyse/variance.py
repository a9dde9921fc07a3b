"""Where the uncertainty of an arm's mean comes from, and where the next dollar helps most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.second_judge import second_judge
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.summary import summarise
from fairtrial.core.errors import FairtrialError
from fairtrial.core.showing import ResultFact, Shown
from fairtrial.stats import Components, variance_components, variance_of_repeats
from fairtrial.stats.units import Measured
from fairtrial.store import opinions, totals

Floats = NDArray[np.float64]


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


class UnitPrices(NamedTuple):
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
            prices = _unit_prices(spent[arm.position], judged.get(arm.position))
            variances.append(_arm_variance(arm.name, parts, error, prices, case_cost))
    if not variances:
        raise FairtrialError(
            "no arm has scores for two cases: nothing varies yet, however many answers there are to one. Add cases to "
            "the suite and run it again"
        )
    return variances


def _unit_prices(spent: totals.ArmTotals, judged: totals.JudgeTotals | None) -> UnitPrices:
    known = bool(spent.cost.usd) and (judged is None or judged.cost.usd is not None)
    if not known:
        return UnitPrices(1.0, 1.0, False, judged is not None)
    answers = spent.stored - spent.failed
    verdict = judged.cost.known / judged.calls if judged and judged.calls else 0.0
    return UnitPrices(spent.cost.known / max(1, answers), verdict, True, judged is not None)


def _arm_variance(
    label: str, components: Components, error: float, prices: UnitPrices, case_cost: float
) -> ArmVariance:
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
    components: Components, error: float, prices: UnitPrices, case_cost: float, budget: float, answer: float
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
    second = second_judge(run.settings)
    judgements = opinions.judge_values(run.store, run.id, run.record.scoring).without(second.name if second else None)
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
