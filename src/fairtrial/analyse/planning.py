"""Plan the next run: how many cases are needed to detect a difference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.case_table import Ints
from fairtrial.analyse.compare import with_first
from fairtrial.analyse.comparison import Price
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.planned_looks import WithLooks, planned_looks
from fairtrial.analyse.price import Prices, price_of, stored_prices
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable
from fairtrial.core.errors import FairtrialError
from fairtrial.core.showing import Shown
from fairtrial.stats import (
    Components,
    cases_for_equivalence,
    cases_for_gate,
    power,
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
    price: Price | None = None  # of what is known so far, and of the next point
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
    prices = stored_prices()
    planned = (
        _pair_power(scores, a, b, deltas, margins, alpha, beta, prices) for a, b in with_first(scores, pairs, SCORE)
    )
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
    prices: Prices | None = None,
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
        price=price_of(evidence, alpha, prices) if prices is not None else None,
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
