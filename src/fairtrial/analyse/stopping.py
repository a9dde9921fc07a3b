"""One arm of a run that could end as soon as it was sure: an interval that holds whenever that was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.analyse.comparison import ANYTIME
from fairtrial.core.stopping import case_order
from fairtrial.stats import Aggregate, betting_sequence


def whenever_stopped(found: Aggregate, means: Mapping[int, float], run_id: str, case_count: int) -> Aggregate:
    """The aggregate of scores 0–1 by case position, with the anytime-valid interval in the order of the run."""
    turn = {position: number for number, position in enumerate(case_order(run_id, case_count))}
    values = [means[position] for position in sorted(means, key=lambda position: turn[position])]
    if not values:
        return found
    interval = betting_sequence(values, bounds=(0.0, 1.0)).interval
    return msgspec.structs.replace(found, ci95=interval, method=ANYTIME)


def could_stop(settings: Mapping[str, Any]) -> bool:
    """Whether a run was allowed to end early."""
    return settings.get("stop") is not None
