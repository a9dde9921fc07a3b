"""Plan a run with looks: how many cases it takes at most and on average, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from fairtrial.analyse.price import stored_prices
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable, pick
from fairtrial.stats.looks import drift_for, prospects
from fairtrial.stats.units import Measured


class WithLooks(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with looks that detects a difference as often as one without, and of how much it is asked on average."""

    difference: Measured
    planned: int
    cases: int  # at most
    share: float  # of the cases, on average, if the difference is as large
    share_if_twice: float  # if it is twice as large
    share_if_none: float
    usd: float | None  # on average, if it is as large; None where prices are unknown


def planned_looks(
    scores: ScoreTable, arms: Sequence[str], needed: Mapping[float, int], looks: int, alpha: float, beta: float
) -> list[WithLooks]:
    """Return a plan with a number of looks for every difference, from the cases that it takes without looks."""
    usd = _usd_of_case([pick(scores, label) for label in arms])
    return [_with_looks(delta, cases, looks, alpha, beta, usd) for delta, cases in needed.items()]


def _with_looks(delta: float, fixed: int, looks: int, alpha: float, beta: float, usd: float | None) -> WithLooks:
    """Return the plan that detects a difference as often as a fixed number of cases does."""
    drift = drift_for(1 - beta, looks, alpha=alpha)
    without = drift_for(1 - beta, 1, alpha=alpha)
    share, twice, none = (prospects(looks, times * drift, alpha=alpha).share for times in (1, 2, 0))
    cases = math.ceil(fixed * (drift / without) ** 2)
    return WithLooks(
        difference=delta,
        planned=looks,
        cases=cases,
        share=share,
        share_if_twice=twice,
        share_if_none=none,
        usd=None if usd is None else usd * cases * share,
    )


def _usd_of_case(arms: Sequence[ArmScores]) -> float | None:
    """Return what the answers of these arms to one case cost, with their verdicts; None where prices are unknown."""
    price_of, usd = stored_prices(), 0.0
    for arm in arms:
        price, cases = price_of(arm), len(arm.values[SCORE])
        if price.usd_of_answer is None or not cases:
            return None
        usd += price.cost.known / cases
    return usd
