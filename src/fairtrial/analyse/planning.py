"""Before the next run: how many cases it takes to see a difference, and where the next dollar helps most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import (
    Components,
    cases_for_equivalence,
    cases_for_gate,
    power,
    variance_components,
)
from fairtrial.stats.distributions import normal_quantile
from fairtrial.stats.planning import by_the_rule, chance_to_pass, detectable_again
from fairtrial.stats.units import Measured
from fairtrial.store import opinions, totals

Floats = NDArray[np.float64]
DELTAS = (0.01, 0.02, 0.05, 0.10)
REPEATS = (1, 2, 3, 5, 10)


class PairPower(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms: what their common cases can show, and what it takes to show more. Numbers are 0–1.

    Cases needed allow for how uncertain the deviation itself is, with as few cases as there were (assurance).
    """

    a: str
    b: str
    count: int
    std_dev: Measured
    case_sd: Measured  # of the differences between cases, with the noise of repeats taken out
    noise_sd: Measured | None  # of one repeat's difference on one case; None where no case has two
    repeats: float
    detectable: Measured | None  # None where no difference can show
    cases_needed: list[tuple[float, list[tuple[int, int]]]]  # difference: (repeats, cases), …
    for_margin: list[ForMargin] = []


class ForMargin(msgspec.Struct, frozen=True, kw_only=True):
    """With as many repeats as there were, and no true difference: what it takes to say that none matters."""

    margin: Measured
    equivalent: int  # cases that put the interval inside ±margin
    gate: int  # cases that rule out a loss beyond it
    chance: float | None  # that a gate passes with the cases that there are; None where few carry the spread


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """Every pair of arms."""

    sources: list[str]
    beta: float
    alpha: float  # for each pair: 5 % shared by all of them
    pairs: list[PairPower]


def plan_power(
    scores: ScoreTable,
    pairs: Sequence[tuple[ArmScores, ArmScores]],
    *,
    deltas: Sequence[float] = DELTAS,
    margins: Sequence[float] = (),
    beta: float = 0.2,
) -> Power:
    """From the differences seen so far. With clusters, a case counts as much as it did here."""
    alpha = 0.05 / max(1, len(pairs))
    planned = (_pair_power(scores, a, b, deltas, margins, alpha, beta) for a, b in pairs)
    found = [pair for pair in planned if pair is not None]
    if not found:
        raise FairtrialError(
            "no two arms differ from case to case on two common cases: there is nothing to plan by yet"
        )
    return Power(sources=[source.label for source in scores.sources], beta=beta, alpha=alpha, pairs=found)


def _pair_power(
    scores: ScoreTable,
    a: ArmScores,
    b: ArmScores,
    deltas: Sequence[float],
    margins: Sequence[float],
    alpha: float,
    beta: float,
) -> PairPower | None:
    common = scores.common(a, b)
    mean = common.mean((0.0, 1.0))
    if not mean.std_err or mean.count < 2:
        return None
    # What a case contributes to the uncertainty of the mean: clusters and weights are in it.
    spread = mean.std_err * math.sqrt(mean.count)
    pilot = max(2, round(mean.freedom) + 1)
    parts = [variance_components(_padded([one.values[SCORE][key] for key in common.keys])) for one in (a, b)]
    known = [part.repeat for part in parts if part.repeat is not None]
    noise = sum(known) if len(known) == len(parts) else None  # of a difference of two single answers
    repeats = len(parts) / sum(1 / part.repeats for part in parts)
    case_variance = max(0.0, spread**2 - sum((part.repeat or 0.0) / part.repeats for part in parts))
    options = REPEATS if noise is not None else (round(repeats),)
    needed = [
        (
            delta,
            [
                (
                    r,
                    cases_to_see(
                        math.sqrt(case_variance + (noise or 0.0) / r), delta, alpha=alpha, beta=beta, pilot=pilot
                    ),
                )
                for r in options
            ],
        )
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
        detectable=detectable_again(mean, alpha=alpha, beta=beta),
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


def cases_to_see(sd: float, delta: float, *, alpha: float, beta: float, pilot: int) -> int:
    """How many cases show a difference, whichever interval it is read off."""
    z = normal_quantile(1 - beta)
    return by_the_rule(
        power(sd, delta, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: delta - z * sd / math.sqrt(n),
        lambda mean: _below(mean.p_value(), alpha),
    )


def cases_within(sd: float, margin: float, *, alpha: float, beta: float, pilot: int) -> int:
    """How many cases put the interval inside ±margin where there is no difference, whichever interval that is."""
    z = normal_quantile(1 - beta / 2)
    return by_the_rule(
        cases_for_equivalence(sd, margin, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: z * sd / math.sqrt(n),
        lambda mean: _below(mean.p_within(margin), alpha),
    )


def cases_to_pass(sd: float, margin: float, *, alpha: float, beta: float = 0.2, pilot: int | None = None) -> int:
    """How many cases rule out a loss beyond the margin where there is none, whichever interval it is read off."""
    z = normal_quantile(1 - beta)
    return by_the_rule(
        cases_for_gate(sd, margin, alpha=alpha, beta=beta, pilot=pilot),
        sd,
        lambda n: -z * sd / math.sqrt(n),
        lambda mean: 2 * mean.p_above(-margin) < alpha,
    )


def _below(p: float | None, alpha: float) -> bool:
    return p is not None and p < alpha


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One way to spend what one more answer to every case costs, and what the standard error would then be."""

    what: str
    more: float  # cases, repeats of each, or judgements of each answer
    std_err: Measured


class ArmVariance(msgspec.Struct, frozen=True, kw_only=True):
    """Where one arm's uncertainty comes from. Numbers are 0–1."""

    label: str
    components: Components
    shares: dict[str, float | None]  # None where it is unknown, and part of the one before
    std_err: Measured
    best_repeats: float | None
    calls: int  # what each step takes, the making of cases included
    cost_usd: float | None  # None where prices are unknown
    steps: list[Step]
    advice: str


class Prices(NamedTuple):
    """What an answer and a verdict cost, in USD or, where that is unknown or nothing, in calls."""

    answer: float
    verdict: float
    known: bool
    judged: bool


def arm_variances(run: Run, *, case_cost: float = 1.0) -> list[ArmVariance]:
    """Every arm of a run; `case_cost` is what making a new case costs, in answers."""
    spent = totals.arm_totals(run.store, run.id, run.record.scoring)
    judged = totals.judge_totals(run.store, run.id, run.record.scoring)
    errors = {arm.arm: arm.aggregate.std_err for arm in run.arms}
    cubes = _cubes(run)
    found = []
    for arm in run.plan_arms:
        cube, error = cubes.get(arm.position), errors[arm.name]
        if cube is not None and len(cube) > 1 and error is not None:
            prices = _prices(spent[arm.position], judged.get(arm.position))
            found.append(_arm_variance(arm.name, variance_components(cube), error, prices, case_cost))
    if not found:
        raise FairtrialError("no arm has scores of two cases: nothing varies yet")
    return found


def _prices(spent: totals.ArmTotals, judged: totals.JudgeTotals | None) -> Prices:
    known = bool(spent.cost.usd) and (judged is None or judged.cost.usd is not None)
    if not known:
        return Prices(1.0, 1.0, False, judged is not None)
    answers = spent.stored - spent.failed
    verdict = judged.cost.known / judged.calls if judged and judged.calls else 0.0
    return Prices(spent.cost.known / max(1, answers), verdict, True, judged is not None)


def _arm_variance(label: str, found: Components, error: float, prices: Prices, case_cost: float) -> ArmVariance:
    answer = prices.answer + (found.judgements * prices.verdict if prices.judged else 0.0)
    budget = found.cases * answer  # one more answer to every case
    steps = _steps(found, error, prices, case_cost, budget, answer)
    return ArmVariance(
        label=label,
        components=found,
        shares=found.shares,
        std_err=error,
        best_repeats=found.best_repeats(case_cost, 1.0),
        calls=round(found.cases * (1 + (found.judgements if prices.judged else 0))),
        cost_usd=budget if prices.known else None,
        steps=steps,
        advice=_advice(found, error, min(steps, key=lambda step: step.std_err)),
    )


def _steps(
    found: Components, error: float, prices: Prices, case_cost: float, budget: float, answer: float
) -> list[Step]:
    """The same budget for more cases, more answers or more verdicts. The error is the run's own (with its weights and
    clusters); the components say by which factor it changes."""
    n, r, j = found.cases, found.repeats, found.judgements
    options = [("cases", budget / ((r + case_cost) * answer))]
    if found.repeat is not None:
        options.append(("repeats", 1.0))
    if prices.judged and found.judge is not None and prices.verdict:
        options.append(("judgements", budget / (n * r * prices.verdict)))
    steps = []
    for what, more in options:
        changed = {"cases": (n + more, r, j), "repeats": (n, r + more, j), "judgements": (n, r, j + more)}[what]
        factor = found.variance(*changed) / found.mean_variance if found.mean_variance else 1.0
        steps.append(Step(what=what, more=more, std_err=error * float(np.sqrt(factor))))
    return steps


_ADVICE = {
    "cases": "more cases",
    "repeats": "more repeats of the same cases",
    "judgements": "more judgements of the same answers (`panel: {judgements: N}`)",
}


def _advice(found: Components, error: float, best: Step) -> str:
    if found.mean_variance == 0 or error == 0:
        return "nothing varies: every case has the same score"
    if found.repeat is None:
        return "one answer a case does not tell the model's noise from differences between cases: use --repeats 3"
    return f"spend on {_ADVICE[best.what]}: that lowers the uncertainty most for its price"


def _cubes(run: Run) -> dict[int, Floats]:
    """Scores as cases × repeats × judgements, by arm; NaN where there is none. Without judges, one judgement each."""
    scores = totals.trial_scores(
        run.store, run.id, run.plan.id, run.record.scoring, [arm.position for arm in run.plan_arms]
    )
    for found in scores.values():  # a weight of 0 is shown elsewhere, not counted
        found.by_case = {case: values for case, values in found.by_case.items() if found.weights[case] > 0}
    judged = _judged_cubes(run, scores)
    return {
        position: judged.get(position, _padded(list(found.by_case.values())))
        for position, found in scores.items()
        if found.by_case
    }


def _judged_cubes(run: Run, scores: Mapping[int, totals.TrialScores]) -> dict[int, Floats]:
    """Of the arms whose scores are what their judges said on average, and nothing else."""
    said = opinions.judge_values(run.store, run.id, run.record.scoring)
    by_arm: dict[int, dict[int, dict[int, list[float]]]] = {}
    for answer, value in zip(said.answer, said.values, strict=True):
        case, arm, repeat = said.answers[answer]
        by_arm.setdefault(arm, {}).setdefault(case, {}).setdefault(repeat, []).append(value)
    return {
        arm: np.stack([_padded([*cases[case].values()], *_shape(cases)) for case in scores[arm].by_case])
        for arm, cases in by_arm.items()
        if _is_mean(cases, scores[arm].means())
    }


def _is_mean(cases: dict[int, dict[int, list[float]]], means: Mapping[int, float]) -> bool:
    """A scorer made of scorers, or a panel's median, is more than its judges' mean."""
    if not means.keys() <= cases.keys():
        return False
    own = {case: float(np.mean([np.mean(values) for values in found.values()])) for case, found in cases.items()}
    return all(abs(own[case] - mean) < 1e-6 for case, mean in means.items())


def _shape(cases: dict[int, dict[int, list[float]]]) -> tuple[int, int]:
    repeats = max(len(found) for found in cases.values())
    return repeats, max(len(values) for found in cases.values() for values in found.values())


def _padded(rows: Sequence[Sequence[float]], count: int | None = None, width: int | None = None) -> Floats:
    """Rows of different lengths as one array, filled with NaN."""
    filled = np.full((count or len(rows), width or max(map(len, rows))), np.nan)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return filled
