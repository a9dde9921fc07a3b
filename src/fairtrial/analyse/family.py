"""Many comparisons as one family: the level of each interval, and adjusted p-values (Holm; of very many Bonferroni)."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.analyse.arm_scores import ArmScores
from fairtrial.analyse.evidence import Anytime
from fairtrial.stats import holm, holm_levels
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
