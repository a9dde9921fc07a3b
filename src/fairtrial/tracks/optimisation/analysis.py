"""Compare prompt styles on optimisation problems: rates, gaps and two composites for every arm, and every pair of arms.

The composite is the guide's: following and closeness, as it is claimed by the objective alone. An infeasible point can
have any objective, so the quality composite, which counts feasibility, is reported next to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median

import msgspec
import numpy as np

from fairtrial.analyse.arm_scores import MetricSum
from fairtrial.analyse.case_table import Chosen
from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.kinds import in_order
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import ArmScores, ScoreTable, choose, read_scores, sources_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.place import Place
from fairtrial.core.score import Scale
from fairtrial.stats import Aggregate, aggregate, multi_run
from fairtrial.stats.one_arm import limits
from fairtrial.store.outcomes import repeat_rows
from fairtrial.tracks.optimisation.answer import STEPS
from fairtrial.tracks.optimisation.experiment_setup import Setup, StyleLength, setup_of, style_lengths

COMPOSITE = "composite"
QUALITY_COMPOSITE = "quality composite"
GAPS = ("relative_gap", "absolute_gap", "violation", "l2_distance")  # of answers that give a point
REPORTED = ("reported_violation", "reported_credit")  # where a study gives credit by what answers report
MEASURES = (
    *("instruction_following", "feasible", "normalised_gap", "quality", COMPOSITE, QUALITY_COMPOSITE),
    *GAPS,
    *REPORTED,
)
BESIDE = (
    QUALITY_COMPOSITE,
    "instruction_following",
    "feasible",
    "normalised_gap",
)  # compared in addition to the composite
KINDS = ("difficulty", "n", "family")
_MOST_ANSWERS = 5000  # that are drawn one by one
Values = Mapping[str, float]  # the metrics of one trial


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of some answers: its mean over problems, and two deviations that are never mixed.

    Of one instance, the interval is over its answers; otherwise over problems.
    """

    mean: float | None
    std_dev: float | None  # between problems
    within: float | None  # between answers to one problem
    ci95: tuple[float, float] | None
    problems: int
    median: float | None = None  # over answers
    over_answers: bool = False  # whether there is one problem only, and its answers are the sample


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """Results of some of an arm's trials. Rates, gaps and composites are 0–1, quality is 0–100."""

    trials: int
    cells: dict[str, Cell]  # by measure
    truncated: int
    misreported: int
    beaten: int
    echoes: int  # answers that repeat the question
    steps: list[float]  # the shares of answers that kept the format up to each step; empty for older runs

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over problems; None if there is none."""
        cell = self.cells.get(measure)
        return None if cell is None else cell.mean

    def median(self, measure: str) -> float | None:
        """Return the median of a measure over answers; None if there is none."""
        cell = self.cells.get(measure)
        return None if cell is None else cell.median


class StyleResult(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: overall, and by difficulty, size and family."""

    arm: str
    target: str
    style: str
    overall: Slice
    by: dict[str, dict[str, Slice]]


class AnswerGap(msgspec.Struct, frozen=True, kw_only=True):
    """Where one answer lies between the optimum (0) and chance (1), and its place in the plan."""

    arm: str
    problem: str
    gap: float
    feasible: bool | None
    place: tuple[int, int, int]


class OptimisationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm, and every pair of arms compared by the composite; problem families are clusters."""

    run_id: str
    suite: str
    weights: tuple[float, float]  # of instruction following, and of closeness
    left_out: list[str]  # arms without a scored answer
    arms: list[StyleResult]
    comparisons: Comparisons | None
    beaten: list[str]  # trials whose answer beats the baseline
    lengths: list[StyleLength]
    setup: Setup
    answers: list[AnswerGap]
    format_steps: tuple[str, ...] = STEPS

    @property
    def one_instance(self) -> bool:
        """Whether there is one problem only: its answers are the sample then."""
        return self.setup.problems == 1

    @property
    def names(self) -> dict[str, str]:
        """The display names of the arms: with one target, its name would only be repeated, and the style is enough."""
        if len({arm.target for arm in self.arms}) > 1:
            return {}
        return {arm.arm: arm.style for arm in self.arms if arm.arm != arm.target}

    def shown(self) -> OptimisationReport:
        """Return the report with readable names; programs get the whole names of arms."""
        names = self.names
        return msgspec.structs.replace(
            self,
            arms=[msgspec.structs.replace(arm, arm=names.get(arm.arm, arm.arm)) for arm in self.arms],
            comparisons=self.comparisons and self.comparisons.renamed(names),
            answers=[msgspec.structs.replace(one, arm=names.get(one.arm, one.arm)) for one in self.answers],
        )

    def kinds(self, by: str) -> list[str]:
        """Return the kinds of problems of one attribute, in their usual order."""
        return sorted({kind for arm in self.arms for kind in arm.by[by]}, key=in_order)


def optimisation_report(run: Run, weights: tuple[float, float] = (0.5, 0.5)) -> OptimisationReport:
    """Return the results of a run on the suite `optimisation`."""
    share = _shares(weights)
    scores = _scores(run, share)
    trials = _Trials(run, scores)
    arms = [arm for arm in scores.arms if arm.values.get("normalised_gap")]
    if not arms:
        raise FairtrialError(f"run {run.id} has no scored answer to an optimisation problem")
    kinds = _kinds(scores)
    everything = np.ones(len(scores.facts), dtype=np.bool_)
    return OptimisationReport(
        run_id=run.id,
        suite=run.record.suite_name,
        weights=share,
        left_out=[arm.label for arm in scores.arms if arm not in arms],
        arms=[
            StyleResult(
                arm=arm.label,
                target=arm.arm.target.id,
                style=arm.arm.condition.name,
                overall=_slice(scores, arm, trials, everything),
                by={
                    by: {
                        kind: _slice(scores, arm, trials, chosen)
                        for kind, chosen in values.items()
                        if trials.any(arm, chosen)
                    }
                    for by, values in kinds.items()
                },
            )
            for arm in arms
        ],
        comparisons=_compared(scores),
        beaten=[trial.trial_id for trial in run.trials_at(trials.beaten)],
        lengths=style_lengths(run),
        setup=setup_of(run),
        answers=trials.gaps[:_MOST_ANSWERS],
    )


def report_of(runs: Sequence[Run], weights: tuple[float, float]) -> OptimisationReport:
    """Return the same for pages, which have numbers about several runs computed in another process."""
    return optimisation_report(runs[0], weights)


def _shares(weights: tuple[float, float]) -> tuple[float, float]:
    if not all(map(math.isfinite, weights)) or min(weights) < 0 or sum(weights) <= 0:
        raise FairtrialError("weights must be two numbers of 0 or more, not both 0")
    return weights[0] / sum(weights), weights[1] / sum(weights)


def _scores(run: Run, share: tuple[float, float]) -> ScoreTable:
    scores = read_scores(sources_of(run))
    for arm in scores.arms:
        for name, parts in composites(share).items():
            arm.add_sum(name, parts, (0.0, 1.0))
    return scores


def composites(share: tuple[float, float]) -> dict[str, MetricSum]:
    """Return what both composites are made of: the guide's, and the one that counts feasibility."""
    following, closeness = share
    return {
        COMPOSITE: MetricSum(closeness, {"instruction_following": following, "normalised_gap": -closeness}),
        QUALITY_COMPOSITE: MetricSum(0.0, {"instruction_following": following, "quality": closeness / 100}),
    }


def _kinds(scores: ScoreTable) -> dict[str, dict[str, Chosen]]:
    """Return the problems of each difficulty, size and family, in the order of the plan."""
    found: dict[str, dict[str, list[int]]] = {by: {} for by in KINDS}
    for key in scores.facts.in_order_of_plans():
        facts = scores.facts[key]
        named = {"difficulty": facts.difficulty, "n": next(iter(facts.tags), None), "family": facts.category}
        for by, kind in named.items():
            found[by].setdefault(kind or "–", []).append(key)
    rows = np.arange(len(scores.facts))
    return {by: {kind: np.isin(rows, keys) for kind, keys in values.items()} for by, values in found.items()}


class _Trials:
    """The metrics of every scored trial by arm, without its texts."""

    def __init__(self, run: Run, scores: ScoreTable) -> None:
        self._of: dict[str, list[tuple[int, Values]]] = {arm.label: [] for arm in scores.arms}
        self.beaten: list[Place] = []
        self.gaps: list[AnswerGap] = []
        rows = scores.facts.rows[0]
        positions = range(len(run.plan_arms))
        for case, arm, repeat, _, stored in repeat_rows(run.store, run.id, run.record.scoring, positions):
            values = {name: item[0] for name, item in stored.items() if item[0] is not None}
            if "normalised_gap" not in values:
                continue
            label, row = scores.arms[arm].label, int(rows[case])
            self._of[label].append((row, values))
            if values.get("baseline_beaten"):
                self.beaten.append(Place(case, arm, repeat))
            feasible = None if "feasible" not in values else bool(values["feasible"])
            self.gaps.append(
                AnswerGap(
                    arm=label,
                    problem=scores.facts[row].id,
                    gap=values["normalised_gap"],
                    feasible=feasible,
                    place=(case, arm, repeat),
                )
            )

    def chosen(self, arm: ArmScores, chosen: Chosen) -> list[tuple[int, Values]]:
        """Return problem and metrics of an arm's trials on some of the problems."""
        return [one for one in self._of[arm.label] if chosen[one[0]]]

    def any(self, arm: ArmScores, chosen: Chosen) -> bool:
        """Return whether an arm has an answer to one of these problems."""
        return any(chosen[row] for row, _ in self._of[arm.label])


def _slice(scores: ScoreTable, arm: ArmScores, trials: _Trials, chosen: Chosen) -> Slice:
    own = trials.chosen(arm, chosen)
    metrics = [values for _, values in own]
    steps = [values["format_steps"] for values in metrics if "format_steps" in values]  # older runs have none
    return Slice(
        trials=len(own),
        cells={
            measure: _cell(_aggregate(scores, arm, measure, chosen), own, arm, measure, alone=len(scores.facts) == 1)
            for measure in MEASURES
            if measure in arm.values and np.any(arm.values[measure].counts[chosen])
        },
        truncated=sum(values["truncated"] > 0 for values in metrics),
        misreported=sum(values.get("misreported_objective", 0.0) > 0 for values in metrics),
        beaten=sum(values["baseline_beaten"] > 0 for values in metrics),
        echoes=sum(values.get("echo", 0.0) > 0 for values in metrics),
        steps=[fmean(taken >= step for taken in steps) for step in range(1, len(STEPS) + 1)] if steps else [],
    )


def _aggregate(scores: ScoreTable, arm: ArmScores, measure: str, chosen: Chosen) -> Aggregate:
    rows = arm.values[measure].rows
    return scores.aggregate(arm, measure, keys=rows[chosen[rows]])


def _cell(mean: Aggregate, trials: Sequence[tuple[int, Values]], arm: ArmScores, measure: str, *, alone: bool) -> Cell:
    """Return a measure of some answers; if a problem is `alone`, the answers to it are the sample of the interval."""
    values = [value for _, stored in trials if (value := arm.value_of(measure, stored)) is not None]
    return Cell(
        mean=mean.mean,
        std_dev=mean.std_dev,
        within=_within(trials, arm, measure),
        ci95=_over_answers(values, arm.scales.get(measure, (None, None))) if alone else mean.ci95,
        problems=mean.count,
        median=median(values) if values else None,
        over_answers=alone,
    )


def _over_answers(values: Sequence[float], scale: Scale) -> tuple[float, float] | None:
    """Return the interval of a mean over answers to one problem: t within the scale; of rates, bounded by the scale."""
    careful = aggregate(values, scale=scale)
    if not careful.std_dev or set(values) <= {0.0, 1.0}:
        return careful.ci95
    low, high = limits(scale, np.asarray(values))
    bounds = multi_run(values).ci95
    return None if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))


def _within(trials: Sequence[tuple[int, Values]], arm: ArmScores, measure: str) -> float | None:
    """Return the deviation between answers to one problem, pooled over problems; None without repeats."""
    groups: dict[int, list[float]] = {}
    for row, values in trials:
        if (value := arm.value_of(measure, values)) is not None:
            groups.setdefault(row, []).append(value)
    spreads = [(np.var(own, ddof=1), len(own) - 1) for own in groups.values() if len(own) > 1]
    freedom = sum(count for _, count in spreads)
    return math.sqrt(sum(float(one) * count for one, count in spreads) / freedom) if freedom else None


def _compared(scores: ScoreTable) -> Comparisons | None:
    pairs = [(a, b) for a, b in choose(scores) if a.values[COMPOSITE] and b.values[COMPOSITE]]
    # The score is the quality, which is half of a composite: as a further verdict it could contradict the first.
    return compare(scores, pairs, metric=COMPOSITE, others=BESIDE) if pairs else None
