"""One run in numbers: every arm's mean with its interval, coverage, cost, tokens and latency."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from fairtrial.analyse.run import Run
from fairtrial.stats import Aggregate, aggregate
from fairtrial.store import totals
from fairtrial.store.totals import ArmTotals

_NOTHING = ArmTotals(0, 0, 0, 0, 0.0, None, 0, 0, 0, 0)


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds of the call itself; waiting for a turn or a retry is not in them."""

    p50: float | None
    p95: float | None


class ArmSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One arm. Scores in `aggregate` are 0–1."""

    arm: str
    target: str
    condition: str
    aggregate: Aggregate
    trials: int
    scored: int
    failed: int
    unscored: int
    waiting: int
    truncated: int
    cost_usd: float | None
    prompt_tokens: int
    completion_tokens: int
    latency_ms: Latency
    params: dict[str, Any]

    @property
    def coverage(self) -> float:
        """The share of the planned trials that the score rests on."""
        return self.scored / self.trials if self.trials else 0.0


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    run_id: str
    series_id: str | None
    suite: str
    status: str
    reason: str | None
    dataset_sha256: str
    case_count: int
    created_at: float
    ended_at: float | None
    arms: list[ArmSummary]
    failures: list[tuple[str, str, int]]


def summarise(run: Run) -> RunSummary:
    """The numbers of a run, as they stand now."""
    store, record, plan = run.store, run.record, run.plan
    planned = totals.planned_trials(store, plan.id, run.plan_arms)
    sums = totals.arm_totals(store, run.id, record.scoring)
    latencies = totals.latencies(store, run.id)
    aggregates = _aggregates(run)
    arms = []
    for arm in run.plan_arms:
        total = sums.get(arm.position, _NOTHING)
        arms.append(
            ArmSummary(
                arm=arm.name,
                target=arm.target.id,
                condition=arm.condition.name,
                aggregate=aggregates[arm.position],
                trials=planned[arm.position],
                scored=total.scored,
                failed=total.failed,
                unscored=total.unscored,
                waiting=planned[arm.position] - total.scored - total.failed - total.unscored,
                truncated=total.truncated,
                cost_usd=None if total.unpriced else total.cost_usd,
                prompt_tokens=total.prompt_tokens,
                completion_tokens=total.completion_tokens,
                latency_ms=_latency(latencies.get(arm.position, ())),
                params=arm.params,
            )
        )
    return RunSummary(
        run_id=run.id,
        series_id=record.series_id,
        suite=record.suite_name,
        status=record.status,
        reason=record.reason,
        dataset_sha256=plan.dataset_sha256,
        case_count=plan.case_count,
        created_at=record.created_at,
        ended_at=record.ended_at,
        arms=arms,
        failures=totals.failure_reasons(store, run.id, record.scoring),
    )


def _aggregates(run: Run) -> list[Aggregate]:
    """Per case first, over repeats; then over cases."""
    scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
    aggregates = []
    for arm in run.plan_arms:
        cases = scores.get(arm.position) or totals.CaseScores()
        clusters = cases.clusters if cases.clustered else None
        aggregates.append(aggregate(cases.means, cases.weights, clusters))
    return aggregates


def _latency(values: Any) -> Latency:
    if not len(values):
        return Latency(None, None)
    p50, p95 = np.percentile(np.asarray(values), [50, 95])
    return Latency(float(p50), float(p95))
