"""A politeness study analysed twice: as in the papers, over runs, and as here, over questions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import msgspec
import numpy as np

from fairtrial.analyse.compare import compare
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import multi_run, paired_runs_test
from fairtrial.stats.units import Interval, Measured

SIGNIFICANT = 0.05


class ToneAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """How often an arm was right: the mean of its runs, and how much these differ."""

    arm: str
    target: str
    tone: str
    mean: Measured
    std_dev: Measured | None
    min: Measured
    max: Measured
    runs: int
    missing: int  # trials without a score, which its runs leave out


class TonePair(msgspec.Struct, frozen=True, kw_only=True):
    """Two tones of one target, a − b, by both analyses."""

    target: str
    a: str
    b: str
    difference: Measured
    t_statistic: float | None  # over runs
    freedom: int | None
    p_runs: float | None
    note: str
    ci95: Interval | None  # over questions, for all pairs of the target together
    p_questions: float | None  # adjusted for all pairs of the target

    @property
    def found_by_runs(self) -> bool:
        """Whether the papers would call the difference significant."""
        return self.p_runs is not None and self.p_runs < SIGNIFICANT

    @property
    def found_by_questions(self) -> bool:
        """Whether the difference holds for questions like these."""
        return self.p_questions is not None and self.p_questions < SIGNIFICANT


class Replication(msgspec.Struct, frozen=True, kw_only=True):
    """All tones of all targets."""

    run_id: str
    questions: int
    tones: list[ToneAccuracy]
    pairs: list[TonePair]


def replication(run: Run) -> Replication:
    """Return both analyses of a run of the suite `politeness`, or of any run with repeats and several conditions."""
    accuracies, missing = _by_repeat(run)
    arms = {arm.name: arm for arm in run.plan_arms if arm.name in accuracies}
    if not arms:
        raise FairtrialError(f"run {run.id} has no scored answer")
    tones = []
    for name, arm in arms.items():
        stats = multi_run(list(accuracies[name].values()))
        tones.append(
            ToneAccuracy(
                arm=name,
                target=arm.target.id,
                tone=arm.condition.name,
                mean=stats.mean,
                std_dev=stats.std_dev,
                min=stats.min,
                max=stats.max,
                runs=stats.count,
                missing=missing[name],
            )
        )
    targets = list(dict.fromkeys(tone.target for tone in tones))
    pairs = [pair for target in targets for pair in _pairs(run, [t for t in tones if t.target == target], accuracies)]
    return Replication(run_id=run.id, questions=run.plan.case_count, tones=tones, pairs=pairs)


def _by_repeat(run: Run) -> tuple[dict[str, dict[int, float]], Counter[str]]:
    """Return the accuracy of every arm in each repeat (a run of the papers), and how many scores are missing."""
    sums: dict[str, dict[int, list[float]]] = {}
    missing: Counter[str] = Counter()
    for trial in run.trials():
        if trial.score is None:
            missing[trial.arm] += 1
            continue
        sums.setdefault(trial.arm, {}).setdefault(trial.repeat, []).append(trial.score)
    means = {arm: {repeat: float(np.mean(own[repeat])) for repeat in sorted(own)} for arm, own in sums.items()}
    return means, missing


def _pairs(run: Run, tones: list[ToneAccuracy], accuracies: dict[str, dict[int, float]]) -> list[TonePair]:
    scores = read_scores(sources_of(run))
    wanted = {frozenset((one.arm, other.arm)) for one, other in combinations(tones, 2)}
    chosen = [pair for pair in choose(scores) if frozenset(arm.label for arm in pair) in wanted]
    compared = compare(scores, chosen, others=(), detailed=0).pairs if chosen else []
    by_arms = {frozenset((one.a, one.b)): one for one in compared}
    pairs = []
    for one, other in combinations(tones, 2):
        first, second = accuracies[one.arm], accuracies[other.arm]
        common = [repeat for repeat in first if repeat in second]
        test = paired_runs_test([first[r] for r in common], [second[r] for r in common])
        found = by_arms.get(frozenset((one.arm, other.arm)))
        interval = found.ci95 if found else None
        if found and interval and found.a != one.arm:
            interval = (-interval[1], -interval[0])
        pairs.append(
            TonePair(
                target=one.target,
                a=one.tone,
                b=other.tone,
                difference=one.mean - other.mean,
                t_statistic=test.t_statistic if test else None,
                freedom=test.freedom if test else None,
                p_runs=test.p_value if test else None,
                note=test.note if test else "one run: no test is possible",
                ci95=interval,
                p_questions=found.p_adjusted if found else None,
            )
        )
    return pairs
