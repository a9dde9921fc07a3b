"""Many comparisons as one family: the level of each interval, and adjusted p-values (Holm; of very many Bonferroni)."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.analyse.arm_scores import ArmScores
from fairtrial.analyse.evidence import Anytime
from fairtrial.stats import holm
from fairtrial.stats.many import levels_of_verdicts
from fairtrial.stats.mean import ALPHA, Estimate

Pairs = Sequence[tuple[ArmScores, ArmScores]]


def scored_pairs(pairs: Pairs, metric: str) -> int:
    """Return how many pairs there is something to say about: both arms have a value."""
    scored = {arm for arm in {arm for pair in pairs for arm in pair} if arm.values.get(metric)}
    return sum(a in scored and b in scored for a, b in pairs)


def shared_levels(estimates: Sequence[Estimate], size: int, alpha: float) -> list[float]:
    """Return the level of each interval in a large family: its part of 5 %, whatever the other pairs show.

    That is a little less than Holm's procedure allows, which needs the p-value of every pair.
    """
    return [estimate.level if isinstance(estimate, Anytime) else alpha / size for estimate in estimates]


def shared_p_values(estimates: Sequence[Estimate], size: int) -> list[float | None]:
    """Return p-values adjusted for the size of a large family."""
    adjusted = adjusted_p_values([estimate for estimate in estimates if isinstance(estimate, Anytime)])
    bets = iter(adjusted)
    return [
        next(bets) if isinstance(one, Anytime) else None if (p := one.p_value()) is None else min(1.0, p * size)
        for one in estimates
    ]


def interval_levels(estimates: Sequence[Estimate], margin: float | None, alpha: float = ALPHA) -> list[float]:
    """Return the level of each interval, so that the verdicts read off them hold for all pairs together."""
    family = [estimate for estimate in estimates if not isinstance(estimate, Anytime)]
    within = None if margin is None else [estimate.p_within(margin) for estimate in family]
    chosen = iter(levels_of_verdicts([estimate.p_value() for estimate in family], within, alpha))
    return [estimate.level if isinstance(estimate, Anytime) else next(chosen) for estimate in estimates]


def adjusted_p_values(estimates: Sequence[Estimate]) -> list[float | None]:
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
