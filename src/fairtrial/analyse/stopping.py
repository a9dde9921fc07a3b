"""One arm of a run that could end as soon as it was sure: an interval that holds whenever that was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.analyse.comparison import ANYTIME
from fairtrial.core.stopping import case_order
from fairtrial.stats import Aggregate, betting_sequence


def whenever_stopped(
    found: Aggregate,
    means: Mapping[int, float],
    run_id: str,
    case_count: int,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Aggregate:
    """The aggregate of values by case position, with the anytime-valid interval in the order of the run, and its
    middle as the mean; as it is where no scale bounds the values."""
    if not means or not all(map(math.isfinite, bounds)):
        return found
    turn = {position: number for number, position in enumerate(case_order(run_id, case_count))}
    values = [means[position] for position in sorted(means, key=lambda position: turn[position])]
    told = betting_sequence(values, bounds=bounds)
    return msgspec.structs.replace(
        found, mean=found.mean if told.middle is None else told.middle, ci95=told.interval, method=ANYTIME
    )


def could_stop(settings: Mapping[str, Any]) -> bool:
    """Whether a run was allowed to end early."""
    return settings.get("stop") is not None
