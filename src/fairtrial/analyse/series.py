"""Several runs of one plan: how much each arm's run means vary, and the comparison of two arms by run means."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.one_arm import aggregate
from fairtrial.stats.runs import RunMeansTest, multi_run, run_means_test
from fairtrial.stats.units import Interval, Measured
from fairtrial.store import totals


class MultiRun(msgspec.Struct, frozen=True, kw_only=True):
    """One arm over several runs; scores are the run means, 0–1."""

    run_ids: tuple[str, ...]
    scores: tuple[Measured, ...]
    mean: Measured
    std_dev: Measured | None
    min: Measured
    max: Measured
    ci95: Interval | None


def over_runs(runs: Sequence[StoredRun]) -> dict[str, MultiRun]:
    """Return every arm that has a mean score in any of the runs."""
    _check_same_cases(runs)
    return {arm: _multi_run(scores) for arm, scores in run_means(runs).items()}


def run_means(runs: Sequence[StoredRun]) -> dict[str, list[tuple[str, float]]]:
    """Return every arm's mean score in every complete run, with the run's id.

    A run that was cut short has other cases than the rest, so its mean cannot be compared with theirs.
    """
    means: dict[str, list[tuple[str, float]]] = {}
    for run in runs:
        planned = totals.planned_trials(run.store, run.plan.id, run.plan_arms)
        sums = totals.arm_totals(run.store, run.id, run.record.scoring)
        scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
        for arm in run.plan_arms:
            cases = scores.get(arm.position)
            total = sums.get(arm.position)
            if total is None or total.scored + total.failed + total.unscored < planned[arm.position]:
                continue
            mean = None if cases is None else aggregate(cases.means, cases.weights).mean
            if mean is not None:
                means.setdefault(arm.name, []).append((run.id, mean))
    return means


def _multi_run(scores: list[tuple[str, float]]) -> MultiRun:
    numbers = multi_run([score for _, score in scores])
    return MultiRun(
        run_ids=tuple(run_id for run_id, _ in scores),
        scores=tuple(score for _, score in scores),
        mean=numbers.mean,
        std_dev=numbers.std_dev,
        min=numbers.min,
        max=numbers.max,
        ci95=None if numbers.ci95 is None else (max(0.0, numbers.ci95[0]), min(1.0, numbers.ci95[1])),
    )


def compare_run_means(runs: Sequence[StoredRun], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means; None if one of them has fewer than two runs."""
    arms = over_runs(runs)
    for name in (a, b):
        if name not in arms:
            raise FairtrialError(f"no run has a score for arm `{name}`; arms with scores: {', '.join(arms) or 'none'}")
    return run_means_test(arms[a].scores, arms[b].scores)


def _check_same_cases(runs: Sequence[StoredRun]) -> None:
    """Reject runs of different cases, whose means cannot be compared."""
    if len({run.plan.dataset_sha256 for run in runs}) > 1:
        raise FairtrialError("these runs have different cases: their means cannot be compared")
