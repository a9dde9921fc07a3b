"""Summarise a run: every arm's mean with its interval, coverage, cost, tokens and latency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.answered import unlike_asked
from fairtrial.analyse.asked import AskedCases, asked_cases
from fairtrial.analyse.judging import Judging, judging
from fairtrial.analyse.labels import ArmLabels, arm_labels
from fairtrial.analyse.lift import Lift, lifts
from fairtrial.analyse.price import ArmPrice, Prices
from fairtrial.analyse.second_judge import SecondOpinion, second_opinions
from fairtrial.analyse.sent import refused_params, sent_params
from fairtrial.analyse.solving import Solving, solving
from fairtrial.analyse.stopping import Adjust, adjustments, again_of, left_race, looks_reached, stop_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.tools import ToolSummary, arm_tools
from fairtrial.core.money import Cost
from fairtrial.core.score import Scale
from fairtrial.core.settings import LookAgain, StopSpec
from fairtrial.stats import Aggregate, aggregate
from fairtrial.stats.one_arm import limits
from fairtrial.stats.passes import pass_at_k, pass_hat_k
from fairtrial.stats.per_arm import PER_ARM, mean_sd, pooled_sd
from fairtrial.stats.units import Measured
from fairtrial.store import ledger, totals
from fairtrial.store.late import late_total
from fairtrial.store.repeated import repeated_questions
from fairtrial.store.totals import ArmTotals, CaseScores

_MOST_TRIES = 5  # pass@k is given for every k up to this, and for the number of repeats itself
_NOTHING = ArmTotals(0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, None, None, Cost())


class LatencySummary(msgspec.Struct, frozen=True):
    """Milliseconds of the call itself, without waiting for a free slot or a retry."""

    p50: float | None
    p95: float | None


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """Something measured besides the score, on its own scale."""

    mean: float
    std_dev: float | None
    ci95: tuple[float, float] | None
    scale: Scale
    rough: bool = False  # few cases account for the spread, and no scale bounds what others could be
    repeat_sd: float | None = None  # between answers to one case; `std_dev` is between cases
    mean_repeat_sd: float | None = None  # the mean of the cases' own deviations, as k-eval has it for a condition


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
    refused: int  # answers in which the model declined
    filtered: int  # answers that the provider's filter stopped
    passed_automatically: int
    cost: Cost
    prompt_tokens: int
    completion_tokens: int
    latency_ms: LatencySummary
    params: dict[str, Any] | None  # as sent; None for runs of versions that did not record them
    metrics: dict[str, Metric] = {}
    judge_verdicts: int = 0
    judge_calls: int = 0  # fewer than the verdicts if some were reused from an earlier scoring
    judge_cost: Cost = Cost()
    left: int | None = None  # the look at which it left a race that went on
    labels: ArmLabels | None = None
    second: SecondOpinion | None = None  # by a second judge of a part of the cases
    tools: ToolSummary | None = None
    statistics: dict[str, Measured | None] = {}  # of `stats.per_arm`, by name
    left_out: list[str] = []  # parameters that its server has refused, and that were left out from then on
    answered_by: list[str] = []  # other models than the one that was asked, by their replies
    limits: dict[str, int] = {}  # how many trials ended at a limit of the agent, by its kind
    solving: Solving | None = None  # what solving takes, where sessions of agents or costs make it worth knowing
    passes: list[Passes] = []  # where answers are right or wrong, and cases have repeats

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of the answers; None unless it is known for every call."""
        return self.cost.usd

    @property
    def repeat_sd(self) -> float | None:
        """Return the deviation between answers to one case; `aggregate.std_dev` is between cases."""
        return self.statistics.get("repeat_sd")

    @property
    def judge_cost_usd(self) -> float | None:
        """Return the cost of judging them; None unless it is known for every call."""
        return self.judge_cost.usd

    @property
    def coverage(self) -> float:
        """Return the share of the planned trials that have a score."""
        return self.scored / self.trials if self.trials else 0.0


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """What a run that stopped early did not need, at the price of the answers and verdicts that it has."""

    trials: int
    of: int
    usd: float | None  # None where prices are unknown


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of one run."""

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
    user_cost: Cost = Cost()  # of the simulated user, which is in no arm's cost
    origin: dict[str, Any] | None = None  # of a run that was imported
    spent: Cost = Cost()  # on everything: answers, verdicts of every scoring, pairs, calls without a result
    late: int = 0  # answers and verdicts that came when another session had taken over the run: in what was spent only
    late_cost: Cost = Cost()
    limited: bool = False  # whether some cases are for some targets or conditions only
    saved: Saved | None = None  # what stopping early saved
    again: LookAgain | None = None  # which run that was looked at before it extends
    stop: StopSpec | None = None  # when it could stop early: then intervals are valid all the same
    repeated: int = 0  # cases that repeat the question of another one, without a cluster
    asked: AskedCases | None = None  # which cases it has, if not all


def ranked(arms: Sequence[ArmSummary]) -> list[ArmSummary]:
    """Return the arms by mean score, best first; those that left a race come after the others, no score last."""
    return sorted(arms, key=lambda arm: (-math.inf if arm.left is None else -arm.left, by_mean(arm.aggregate.mean)))


def _saved(arms: Sequence[ArmSummary]) -> Saved:
    """Return what stopping early saved, arm by arm."""
    usd = 0.0
    known = True
    for arm in arms:
        cost, ended = arm.cost + arm.judge_cost, arm.trials - arm.waiting
        known = known and cost.usd is not None and ended > 0
        usd += arm.waiting * (cost.usd or 0.0) / max(1, ended)
    return Saved(
        trials=sum(arm.waiting for arm in arms), of=sum(arm.trials for arm in arms), usd=usd if known else None
    )


def by_mean(mean: float | None) -> float:
    """Return a sort key for a mean: best first, no score last."""
    return math.inf if mean is None else -mean


def summarise(run: StoredRun, baseline: str | None = None) -> RunSummary:
    """Summarise a run as it is now; lifts are over the condition `baseline`, or over the first one."""
    store, record, plan, plan_arms = run.store, run.record, run.plan, run.plan_arms
    cases = totals.planned(store, plan.id)
    planned = [cases.trials(arm) for arm in plan_arms]
    sums = totals.arm_totals(store, record.id, record.scoring)
    latencies = totals.latencies(store, record.id)
    scores = totals.case_scores(store, record.id, plan.id, record.scoring)
    settings: dict[str, Any] = msgspec.json.decode(record.settings)
    adjust, stop = adjustments(store, record, plan), stop_of(settings)
    left = left_race(record.status, stop, looks_reached(store, record.id, settings, plan.case_count))
    aggregates = [_aggregate(scores.get(arm.position), adjust(arm.position)) for arm in plan_arms]
    metrics = totals.metric_scores(store, record.id, plan.id, record.scoring)
    judged = totals.judge_totals(store, record.id, record.scoring)
    labels, second = arm_labels(store, record), second_opinions(store, record)
    tools = arm_tools(store, record, plan_arms, adjust)
    late, late_cost = late_total(store, record.id)
    solved = solving(run, sums)
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
                limits=total.limits,
                solving=solved.get(arm.position),
                refused=total.refused,
                filtered=total.filtered,
                passed_automatically=total.passed_automatically,
                cost=total.cost,
                prompt_tokens=total.prompt_tokens,
                completion_tokens=total.completion_tokens,
                latency_ms=_latency(latencies.get(arm.position, ())),
                left=left.get(arm.position),
                params=sent_params(record, arm),
                left_out=refused_params(record, arm),
                metrics={
                    name: _metric(found, scores.get(arm.position), adjust(arm.position))
                    for name, found in metrics.get(arm.position, {}).items()
                },
                judge_verdicts=judges.verdicts,
                judge_calls=judges.calls,
                judge_cost=judges.cost,
                labels=labels.get(arm.position),
                second=second.get(arm.position),
                tools=tools.get(arm.position),
                statistics=_statistics(scores.get(arm.position)),
                answered_by=unlike_asked(arm.target, (total.first_model, total.last_model)),
                passes=_passes(scores.get(arm.position), adjust(arm.position)),
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
        judging=judging(store, record, plan_arms),
        lifts=lifts(store, record, plan_arms, baseline),
        user_cost=ledger.user_cost(store, record.id),
        origin=record.origin,
        spent=ledger.spent(store, record.id),
        late=late,
        late_cost=late_cost,
        limited=bool(cases.limited),
        saved=_saved(arms) if record.status == "stopped" and stop is not None else None,
        stop=stop,
        again=again_of(settings),
        repeated=repeated_questions(store, plan, plan_arms),
        asked=asked_cases(store, record, plan),
    )


def _aggregate(scores: CaseScores | None, adjust: Adjust) -> Aggregate:
    """Average over repeats of each case first, then over cases."""
    cases = scores or CaseScores()
    clusters = cases.clusters if cases.clustered else None
    plain = aggregate(cases.means, cases.weights, clusters, alpha=adjust.alpha)
    return adjust(plain, dict(zip(cases.positions, cases.means, strict=True)), (0.0, 1.0))


def _passes(scores: CaseScores | None, adjust: Adjust) -> list[Passes]:
    """Return pass@k and pass^k for every k that all cases have repeats for; empty unless scores are all 0 or 1."""
    if scores is None or not len(scores.means):
        return []
    tries, means = np.asarray(scores.repeats), np.asarray(scores.means)
    right = tries * means
    # Scores are all 0 or 1 exactly if the sum of their squares equals their sum.
    if tries.min() < 2 or np.any(np.abs(np.asarray(scores.squares) - right) > 1e-9):
        return []
    clusters = scores.clusters if scores.clustered else None
    most = int(tries.min())
    return [
        Passes(
            k=k,
            at_least_once=_over_cases(pass_at_k(right, tries, k), scores, clusters, adjust),
            every_time=_over_cases(pass_hat_k(right, tries, k), scores, clusters, adjust),
        )
        for k in dict.fromkeys((*range(2, min(most, _MOST_TRIES) + 1), most))
    ]


def _over_cases(values: Any, scores: CaseScores, clusters: Any, adjust: Adjust) -> Aggregate:
    plain = aggregate(values, scores.weights, clusters, alpha=adjust.alpha)
    return adjust(plain, dict(zip(scores.positions, map(float, values), strict=True)), (0.0, 1.0))


def repeat_deviations(scores: CaseScores | None) -> NDArray[np.float64]:
    """Return the standard deviation between the scores of every case that has two."""
    if scores is None:
        return np.empty(0)
    repeats, means = np.asarray(scores.repeats), np.asarray(scores.means)
    within = np.maximum(0.0, np.asarray(scores.squares) - repeats * means**2)
    several = repeats > 1
    deviations: NDArray[np.float64] = np.sqrt(within[several] / (repeats[several] - 1))
    return deviations


def _statistics(scores: CaseScores | None) -> dict[str, float | None]:
    cases = scores or CaseScores()
    values = [np.asarray(column) for column in (cases.repeats, cases.means, cases.squares)]
    return {name: kernel(*values) for name, kernel in PER_ARM.items()}


def _metric(metric: totals.MetricScores, scores: CaseScores | None, adjust: Adjust) -> Metric:
    means = metric.means()
    clusters = None
    if scores is not None and scores.clustered:
        cluster_of = dict(zip(scores.positions, scores.clusters, strict=True))
        clusters = [cluster_of.get(case, f"\0{case}") for case in means]  # other tools: no score, but a metric
    weights = list(metric.weights.values())
    result = aggregate(list(means.values()), weights, clusters, scale=metric.scale, alpha=adjust.alpha)
    result = adjust(result, means, limits(metric.scale, np.asarray(list(means.values()))))
    assert result.mean is not None
    values = np.asarray([[metric.counts[case], mean, metric.squares[case]] for case, mean in means.items()]).T
    return Metric(
        mean=result.mean,
        std_dev=result.std_dev,
        ci95=result.ci95,
        scale=metric.scale,
        rough=result.rough,
        repeat_sd=pooled_sd(*values),
        mean_repeat_sd=mean_sd(*values),
    )


def _latency(values: Any) -> LatencySummary:
    if not len(values):
        return LatencySummary(None, None)
    p50, p95 = np.percentile(np.asarray(values), [50, 95])
    return LatencySummary(float(p50), float(p95))


def summary_prices(summary: RunSummary) -> Prices:
    """Return what tells the price of the arms of a run that is summed up already."""
    prices = {
        arm.arm: ArmPrice(
            answers=arm.trials - arm.failed - arm.waiting,
            verdicts=arm.judge_calls,
            cost=arm.cost + arm.judge_cost,
            judging=arm.judge_cost,
            second=(arm.second.calls, arm.second.cost) if arm.second else (0, Cost()),
        )
        for arm in summary.arms
    }
    return lambda arm: prices[arm.arm.name]
