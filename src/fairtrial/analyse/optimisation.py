"""Prompt styles on optimisation problems: rates, gaps and a composite for every arm, and what a style changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import msgspec

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.run import Run, TrialRecord
from fairtrial.analyse.score_table import ArmScores, choose, read_scores, sources_of
from fairtrial.core.errors import FairtrialError

COMPOSITE = "composite"
BESIDE = ("instruction_following", "feasible", "quality")  # what it is made of


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """Some of an arm's trials in numbers. Rates, gaps and the composite are 0–1, quality is 0–100."""

    trials: int
    instruction_following: float
    feasible: float
    quality: float
    normalised_gap: float
    median_normalised_gap: float
    relative_gap: float | None  # of answers with a point
    median_relative_gap: float | None
    composite: float
    truncated: int
    misreported: int
    beaten: int


class StyleResult(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: all of it, and by difficulty, size and family."""

    arm: str
    target: str
    style: str
    overall: Slice
    by: dict[str, dict[str, Slice]]


class OptimisationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm, and every two of them compared by the composite; problem families are clusters."""

    run_id: str
    suite: str
    weights: tuple[float, float]  # of instruction following, and of closeness
    left_out: list[str]  # arms without a scored answer
    arms: list[StyleResult]
    comparisons: Comparisons | None
    beaten: list[str]  # trials whose answer is better than the baseline


def optimisation_report(run: Run, weights: tuple[float, float] = (0.5, 0.5)) -> OptimisationReport:
    """The numbers of a run on the suite `optimisation`."""
    if not all(map(math.isfinite, weights)) or min(weights) < 0 or sum(weights) <= 0:
        raise FairtrialError("weights are two numbers of 0 or more, not both 0")
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
                overall=_slice(found, share),
                by={
                    "difficulty": _sliced(found, lambda trial: trial.difficulty or "–", share),
                    "n": _sliced(found, lambda trial: next(iter(trial.tags), "–"), share),
                    "family": _sliced(found, lambda trial: trial.category or "–", share),
                },
            )
            for name, found in trials.items()
        ],
        comparisons=_compared(run, share),
        beaten=[t.trial_id for found in trials.values() for t in found if t.metrics.get("baseline_beaten")],
    )


def composite(metrics: dict[str, float], weights: tuple[float, float]) -> float:
    """Instruction following and closeness: 1 − gap of a feasible answer, 0 of an invalid one, the quality in between.

    The gap alone would pay for leaving the constraints out.
    """
    return weights[0] * metrics["instruction_following"] + weights[1] * metrics["quality"] / 100


def _sliced(
    trials: Iterable[TrialRecord], key: Callable[[TrialRecord], str], weights: tuple[float, float]
) -> dict[str, Slice]:
    groups: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return {name: _slice(found, weights) for name, found in groups.items()}


def _slice(trials: Sequence[TrialRecord], weights: tuple[float, float]) -> Slice:
    metrics = [trial.metrics for trial in trials]
    gaps = [found["normalised_gap"] for found in metrics]
    relative = [found["relative_gap"] for found in metrics if "relative_gap" in found]
    return Slice(
        trials=len(trials),
        instruction_following=fmean(found["instruction_following"] for found in metrics),
        feasible=fmean(found["feasible"] for found in metrics),
        quality=fmean(found["quality"] for found in metrics),
        normalised_gap=fmean(gaps),
        median_normalised_gap=median(gaps),
        relative_gap=fmean(relative) if relative else None,
        median_relative_gap=median(relative) if relative else None,
        composite=fmean(composite(found, weights) for found in metrics),
        truncated=sum(found["truncated"] > 0 for found in metrics),
        misreported=sum(found.get("misreported_objective", 0.0) > 0 for found in metrics),
        beaten=sum(found["baseline_beaten"] > 0 for found in metrics),
    )


def _compared(run: Run, weights: tuple[float, float]) -> Comparisons | None:
    scores = read_scores(sources_of(run))
    for one in scores.arms:
        _add_composite(one, weights)
    pairs = [(a, b) for a, b in choose(scores) if a.values[COMPOSITE] and b.values[COMPOSITE]]
    # The score is the quality, which is half of the composite: as a second headline it would contradict the first.
    return compare(scores, pairs, metric=COMPOSITE, others=BESIDE) if pairs else None


def _add_composite(one: ArmScores, weights: tuple[float, float]) -> None:
    following, quality = one.values.get("instruction_following", {}), one.values.get("quality", {})
    one.scales[COMPOSITE] = (0.0, 1.0)
    one.values[COMPOSITE] = {
        case: [
            composite({"instruction_following": a, "quality": b}, weights)
            for a, b in zip(following[case], quality[case], strict=True)
        ]
        for case in following
    }
