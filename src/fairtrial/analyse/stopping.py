"""Anytime-valid interval for an arm of a run that could stop as soon as it was sure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairtrial.analyse.comparison import ANYTIME
from fairtrial.core.order import case_order
from fairtrial.stats import Aggregate, betting_sequence
from fairtrial.stats.mean import ALPHA

# Makes an aggregate's interval valid for a run that could stop early: (aggregate, means by case, bounds) -> aggregate.
Adjust = Callable[[Aggregate, Mapping[int, float], tuple[float, float]], Aggregate]


def whenever_stopped(
    plain: Aggregate,
    means: Mapping[int, float],
    order_key: str | None,
    case_count: int,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha: float = ALPHA,
) -> Aggregate:
    """Return the aggregate with the anytime-valid interval, and with the midpoint of that interval as its mean.

    `means` are values by case position; they are taken in the order of the run. The aggregate is returned unchanged if
    no scale bounds the values.
    """
    if not means or not all(map(math.isfinite, bounds)):
        return plain
    order_of = {position: number for number, position in enumerate(case_order(order_key, case_count))}
    values = [means[position] for position in sorted(means, key=lambda position: order_of[position])]
    sequence = betting_sequence(values, alpha=alpha, bounds=bounds)
    return msgspec.structs.replace(
        plain, mean=plain.mean if sequence.middle is None else sequence.middle, ci95=sequence.interval, method=ANYTIME
    )


def could_stop(settings: Mapping[str, Any]) -> bool:
    """Return whether a run was allowed to stop early."""
    return settings.get("stop") is not None
