"""Compare prompt styles on optimisation problems: rates, gaps and a composite score for every arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import msgspec
import numpy as np

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.run import Run, TrialRecord
from fairtrial.analyse.score_table import ArmScores, ScoreTable, choose, read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import Aggregate

COMPOSITE = "composite"
SHOWN = ("normalised_gap", "feasible", "instruction_following", "quality", COMPOSITE)  # with their intervals
BESIDE = ("instruction_following", "feasible", "quality")  # the metrics that make up the composite, shown beside it


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """Results of some of an arm's trials. Rates, gaps and the composite are 0–1, quality is 0–100."""

    trials: int
    instruction_following: float
    feasible: float | None  # None if no problem is known, only its baseline
    quality: float
    normalised_gap: float
    median_normalised_gap: float
    relative_gap: float | None  # over answers that give a point
    median_relative_gap: float | None
    composite: float
    truncated: int
    misreported: int
    beaten: int
    echoes: int  # answers that repeat the question
    format_steps: float | None  # of 5: JSON, keys, length, types, nothing else


class StyleResult(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: overall, and by difficulty, size and family."""

    arm: str
    target: str
    style: str
    overall: Slice
    by: dict[str, dict[str, Slice]]


class OptimisationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm, and every pair of arms compared by the composite; problem families are clusters."""

    run_id: str
    suite: str
    weights: tuple[float, float]  # of instruction following, and of closeness
    left_out: list[str]  # arms without a scored answer
    arms: list[StyleResult]
    comparisons: Comparisons | None
    beaten: list[str]  # trials whose answer beats the baseline


def optimisation_report(run: Run, weights: tuple[float, float] = (0.5, 0.5)) -> OptimisationReport:
    """Return the results of a run on the suite `optimisation`."""
    if not all(map(math.isfinite, weights)) or min(weights) < 0 or sum(weights) <= 0:
        raise FairtrialError("weights must be two numbers of 0 or more, not both 0")
    share = (weights[0] / sum(weights), weights[1] / sum(weights))
    trials: dict[str, list[TrialRecord]] = {}
    for trial in run.trials():
        if trial.score is not None and "normalised_gap" in trial.metrics:
            trials.setdefault(trial.arm, []).append(trial)
    if not trials:
        raise FairtrialError(f"run {run.id} has no scored answer to an optimisation problem")
    arms = {arm.name: arm for arm in run.plan_arms}
    return OptimisationReport(
        run_id=run.id,
        suite=run.record.suite_name,
        weights=share,
        left_out=[name for name in arms if name not in trials],
        arms=[
            StyleResult(
                arm=name,
                target=arms[name].target.id,
                style=arms[name].condition.name,
                overall=_slice(own, share),
                by={
                    "difficulty": _sliced(own, lambda trial: trial.difficulty or "–", share),
                    "n": _sliced(own, lambda trial: next(iter(trial.tags), "–"), share),
                    "family": _sliced(own, lambda trial: trial.category or "–", share),
                },
            )
            for name, own in trials.items()
        ],
        comparisons=_compared(run, share),
        beaten=[t.trial_id for own in trials.values() for t in own if t.metrics.get("baseline_beaten")],
    )


class StyleMeans(msgspec.Struct, frozen=True, kw_only=True):
    """Means of every arm with their intervals, on the scales of the metrics; problem families are clusters."""

    means: dict[str, dict[str, Aggregate]]  # by metric and arm
    by: dict[str, dict[str, dict[str, dict[str, Aggregate]]]]  # by metric, attribute, kind and arm
    cases: dict[str, dict[str, int]]  # how many problems are of each kind


def style_means(run: Run, weights: tuple[float, float] = (0.5, 0.5)) -> StyleMeans:
    """Return the means of a run on the suite `optimisation`, overall and by difficulty and size."""
    share = (weights[0] / sum(weights), weights[1] / sum(weights))
    scores = read_scores(sources_of(run))
    arms = [arm for arm in scores.arms if arm.values.get("normalised_gap")]
    for arm in arms:
        _add_composite(arm, share)
    kinds: dict[str, dict[str, list[int]]] = {"difficulty": {}, "n": {}}
    for key in scores.facts.in_order_of_plans():
        facts = scores.facts[key]
        kinds["difficulty"].setdefault(facts.difficulty or "–", []).append(key)
        kinds["n"].setdefault(next(iter(facts.tags), "–"), []).append(key)
    return StyleMeans(
        means={metric: _arm_means(scores, arms, metric) for metric in SHOWN},
        by={
            metric: {
                by: {kind: _arm_means(scores, arms, metric, keys) for kind, keys in groups.items()}
                for by, groups in kinds.items()
            }
            for metric in SHOWN
        },
        cases={by: {kind: len(keys) for kind, keys in groups.items()} for by, groups in kinds.items()},
    )


def _arm_means(
    scores: ScoreTable, arms: Sequence[ArmScores], metric: str, keys: Sequence[int] | None = None
) -> dict[str, Aggregate]:
    means = {}
    for arm in arms:
        if metric not in arm.values:
            continue
        rows = arm.values[metric].rows
        own = rows if keys is None else rows[np.isin(rows, keys)]
        if len(own):
            means[arm.label] = scores.aggregate(arm, metric, keys=own)
    return means


def composite(metrics: dict[str, float], weights: tuple[float, float]) -> float:
    """Return the weighted mean of instruction following and closeness.

    Closeness is 1 − gap for a feasible answer, 0 for an invalid one, and the quality in between. The gap alone would
    reward answers that ignore the constraints.
    """
    return weights[0] * metrics["instruction_following"] + weights[1] * metrics["quality"] / 100


def _sliced(
    trials: Iterable[TrialRecord], key: Callable[[TrialRecord], str], weights: tuple[float, float]
) -> dict[str, Slice]:
    groups: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return {name: _slice(group, weights) for name, group in groups.items()}


def _slice(trials: Sequence[TrialRecord], weights: tuple[float, float]) -> Slice:
    metrics = [trial.metrics for trial in trials]
    gaps = [values["normalised_gap"] for values in metrics]
    feasible = [values["feasible"] for values in metrics if "feasible" in values]
    steps = [values["format_steps"] for values in metrics if "format_steps" in values]  # older runs have none
    relative = [values["relative_gap"] for values in metrics if "relative_gap" in values]
    return Slice(
        trials=len(trials),
        instruction_following=fmean(values["instruction_following"] for values in metrics),
        feasible=fmean(feasible) if feasible else None,
        quality=fmean(values["quality"] for values in metrics),
        normalised_gap=fmean(gaps),
        median_normalised_gap=median(gaps),
        relative_gap=fmean(relative) if relative else None,
        median_relative_gap=median(relative) if relative else None,
        composite=fmean(composite(values, weights) for values in metrics),
        truncated=sum(values["truncated"] > 0 for values in metrics),
        misreported=sum(values.get("misreported_objective", 0.0) > 0 for values in metrics),
        beaten=sum(values["baseline_beaten"] > 0 for values in metrics),
        echoes=sum(values.get("echo", 0.0) > 0 for values in metrics),
        format_steps=fmean(steps) if steps else None,
    )


def _compared(run: Run, weights: tuple[float, float]) -> Comparisons | None:
    scores = read_scores(sources_of(run))
    for arm in scores.arms:
        _add_composite(arm, weights)
    pairs = [(a, b) for a, b in choose(scores) if a.values[COMPOSITE] and b.values[COMPOSITE]]
    # The score is the quality, which is half of the composite: as a second verdict it could contradict the first.
    return compare(scores, pairs, metric=COMPOSITE, others=BESIDE) if pairs else None


def _add_composite(arm: ArmScores, weights: tuple[float, float]) -> None:
    arm.scales[COMPOSITE] = (0.0, 1.0)
    combined = arm.values.column(COMPOSITE)
    if "instruction_following" in arm.values:
        following, quality = arm.values["instruction_following"], arm.values["quality"]
        combined.counts = following.counts
        combined.sums = weights[0] * following.sums + weights[1] * quality.sums / 100  # `composite` is linear
