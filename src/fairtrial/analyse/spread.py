"""How latency and cost are distributed over the answers of each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from fairtrial.analyse.stored_run import StoredRun
from fairtrial.store import totals

_SHARES = (5, 25, 50, 75, 95)
Quantiles = tuple[float, float, float, float, float]


class ArmSpread(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: the 5th, 25th, 50th, 75th and 95th percentile; None where nothing is known."""

    latency_ms: Quantiles | None
    cost_usd: Quantiles | None  # of an answer, where the cost of every call is known


def run_spreads(run: StoredRun) -> dict[str, ArmSpread]:
    """Return the distributions of every arm."""
    latencies, costs = totals.latencies(run.store, run.id), totals.answer_costs(run.store, run.id)
    return {
        arm.name: ArmSpread(latency_ms=_quantiles(latencies, arm.position), cost_usd=_quantiles(costs, arm.position))
        for arm in run.plan_arms
    }


def _quantiles(values: Mapping[int, Sequence[float]], arm: int) -> Quantiles | None:
    own = values.get(arm, ())
    if not len(own):
        return None
    p5, p25, p50, p75, p95 = (float(value) for value in np.percentile(np.asarray(own), _SHARES))
    return p5, p25, p50, p75, p95
