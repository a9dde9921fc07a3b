"""One run in numbers: every arm's mean with its interval, coverage, cost, tokens and latency."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from fairtrial.analyse.judging import Judging, judging
from fairtrial.analyse.labels import ArmLabels, arm_labels
from fairtrial.analyse.lift import Lift, lifts
from fairtrial.analyse.sent import sent_params
from fairtrial.analyse.stopping import could_stop, whenever_stopped
from fairtrial.analyse.tools import ToolSummary, arm_tools
from fairtrial.core.experiment import Arm
from fairtrial.core.money import Cost
from fairtrial.core.score import Scale
from fairtrial.stats import Aggregate, aggregate
from fairtrial.stats.one_arm import limits
from fairtrial.stats.passes import pass_at_k, pass_hat_k
from fairtrial.store import Store, ledger, totals
from fairtrial.store.store import PlanRecord, RunRecord
from fairtrial.store.totals import ArmTotals, CaseScores

_MOST_TRIES = 5  # every k up to this, and the number of repeats itself
Held = Callable[[Aggregate, Mapping[int, float], tuple[float, float]], Aggregate]  # how an interval is made to hold
_NOTHING = ArmTotals(0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, Cost())


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds of the call itself; waiting for a turn or a retry is not in them."""

    p50: float | None
    p95: float | None


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """Something measured beside the score, on its own scale."""

    mean: float
    std_dev: float | None
    ci95: tuple[float, float] | None
    scale: Scale
    rough: bool = False  # few cases carry the spread, and no scale says what others could be


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """Right answers over k repeats of a case."""

    k: int
    at_least_once: Aggregate  # pass@k
    every_time: Aggregate  # pass^k


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
    refused: int  # answers by which the model declined
    filtered: int  # answers that the provider's filter stopped
    passed_automatically: int
    cost: Cost
    prompt_tokens: int
    completion_tokens: int
    latency_ms: Latency
    params: dict[str, Any] | None  # as they are sent; None in runs of versions that did not record it
    metrics: dict[str, Metric] = {}
    judge_verdicts: int = 0
    judge_calls: int = 0  # fewer where verdicts of an earlier scoring were used again
    judge_cost: Cost = Cost()
    labels: ArmLabels | None = None
    tools: ToolSummary | None = None
    repeat_sd: float | None = None  # between answers to one case; `aggregate.std_dev` is between cases
    passes: list[Passes] = []  # where answers are right or wrong, and cases have repeats

    @property
    def cost_usd(self) -> float | None:
        """What the answers cost; None where that is not known of every call."""
        return self.cost.usd

    @property
    def judge_cost_usd(self) -> float | None:
        """What judging them cost; None where that is not known of every call."""
        return self.judge_cost.usd

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
    judging: Judging | None = None
    lifts: list[Lift] = []
    spent: Cost = Cost()  # on everything: answers, verdicts of every scoring, pairs, calls without a result


def ranked(arms: Sequence[ArmSummary]) -> list[ArmSummary]:
    """Best first; an arm without a score comes last."""
    return sorted(arms, key=lambda arm: by_mean(arm.aggregate.mean))


def by_mean(mean: float | None) -> float:
    """A key to sort by: the best first, and whatever has no score last."""
    return math.inf if mean is None else -mean


def summarise(
    store: Store, record: RunRecord, plan: PlanRecord, plan_arms: tuple[Arm, ...], baseline: str | None = None
) -> RunSummary:
    """The numbers of a run, as they stand now; lifts are over the condition `baseline`, or over the first."""
    planned = totals.planned_trials(store, plan.id, plan_arms)
    sums = totals.arm_totals(store, record.id, record.scoring)
    latencies = totals.latencies(store, record.id)
    scores = totals.case_scores(store, record.id, plan.id, record.scoring)
    settings: dict[str, Any] = msgspec.json.decode(record.settings)
    held = _held(record.id, plan, settings)
    aggregates = [_aggregate(scores.get(arm.position), held) for arm in plan_arms]
    metrics = totals.metric_scores(store, record.id, plan.id, record.scoring)
    judged = totals.judge_totals(store, record.id, record.scoring)
    labels = arm_labels(store, record)
    tools = arm_tools(store, record, plan_arms)
    arms = []
    for arm in plan_arms:
        judges = judged.get(arm.position, totals.JudgeTotals(0, 0, Cost()))
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
                refused=total.refused,
                filtered=total.filtered,
                passed_automatically=total.passed_automatically,
                cost=total.cost,
                prompt_tokens=total.prompt_tokens,
                completion_tokens=total.completion_tokens,
                latency_ms=_latency(latencies.get(arm.position, ())),
                params=sent_params(record, arm),
                metrics={
                    name: _metric(found, scores.get(arm.position), held)
                    for name, found in metrics.get(arm.position, {}).items()
                },
                judge_verdicts=judges.verdicts,
                judge_calls=judges.calls,
                judge_cost=judges.cost,
                labels=labels.get(arm.position),
                tools=tools.get(arm.position),
                repeat_sd=_repeat_sd(scores.get(arm.position)),
                passes=_passes(scores.get(arm.position), held),
            )
        )
    return RunSummary(
        run_id=record.id,
        series_id=record.series_id,
        suite=record.suite_name,
        status=record.status,
        reason=record.reason,
        dataset_sha256=plan.dataset_sha256,
        case_count=plan.case_count,
        created_at=record.created_at,
        ended_at=record.ended_at,
        arms=arms,
        failures=totals.failure_reasons(store, record.id, record.scoring),
        judging=judging(store, record),
        lifts=lifts(store, record, plan_arms, baseline),
        spent=ledger.spent(store, record.id),
    )


def _held(run_id: str, plan: PlanRecord, settings: dict[str, Any]) -> Held:
    """As it is; of a run that could stop early, what holds whenever it stopped."""
    if not could_stop(settings):
        return lambda found, means, bounds: found
    return lambda found, means, bounds: whenever_stopped(found, means, run_id, plan.case_count, bounds)


def _aggregate(scores: CaseScores | None, held: Held) -> Aggregate:
    """Per case first, over repeats; then over cases."""
    cases = scores or CaseScores()
    found = aggregate(cases.means, cases.weights, cases.clusters if cases.clustered else None)
    return held(found, dict(zip(cases.positions, cases.means, strict=True)), (0.0, 1.0))


def _passes(scores: CaseScores | None, held: Held) -> list[Passes]:
    """For every k that all cases have repeats for; nothing where answers are more than right or wrong."""
    if scores is None or not len(scores.means):
        return []
    tries, means = np.asarray(scores.repeats), np.asarray(scores.means)
    right = tries * means
    # Scores are all 0 or 1 exactly where their squares add up to what they do.
    if tries.min() < 2 or np.any(np.abs(np.asarray(scores.squares) - right) > 1e-9):
        return []
    clusters = scores.clusters if scores.clustered else None
    most = int(tries.min())
    return [
        Passes(
            k=k,
            at_least_once=_over_cases(pass_at_k(right, tries, k), scores, clusters, held),
            every_time=_over_cases(pass_hat_k(right, tries, k), scores, clusters, held),
        )
        for k in dict.fromkeys((*range(2, min(most, _MOST_TRIES) + 1), most))
    ]


def _over_cases(values: Any, scores: CaseScores, clusters: Any, held: Held) -> Aggregate:
    found = aggregate(values, scores.weights, clusters)
    return held(found, dict(zip(scores.positions, map(float, values), strict=True)), (0.0, 1.0))


def _repeat_sd(scores: CaseScores | None) -> float | None:
    """The pooled deviation between the scores of one case; None where no case has two."""
    if scores is None:
        return None
    repeats, means = np.asarray(scores.repeats), np.asarray(scores.means)
    freedom = int(np.sum(repeats - 1))
    if freedom == 0:
        return None
    within = float(np.sum(np.asarray(scores.squares) - repeats * means**2))
    return math.sqrt(max(0.0, within) / freedom)


def _metric(found: totals.MetricScores, scores: CaseScores | None, held: Held) -> Metric:
    means = found.means()
    clusters = None
    if scores is not None and scores.clustered:
        known = dict(zip(scores.positions, scores.clusters, strict=True))
        clusters = [known[case] for case in means]
    numbers = aggregate(list(means.values()), list(found.weights.values()), clusters, scale=found.scale)
    numbers = held(numbers, means, limits(found.scale, np.asarray(list(means.values()))))
    assert numbers.mean is not None
    return Metric(mean=numbers.mean, std_dev=numbers.std_dev, ci95=numbers.ci95, scale=found.scale, rough=numbers.rough)


def _latency(values: Any) -> Latency:
    if not len(values):
        return Latency(None, None)
    p50, p95 = np.percentile(np.asarray(values), [50, 95])
    return Latency(float(p50), float(p95))
