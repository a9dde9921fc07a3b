"""The numbers that pages show about runs, as module-level functions so that any process can compute them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from fairtrial.analyse.battles import By
from fairtrial.analyse.causes import Causes, causes
from fairtrial.analyse.compare import compare, compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.labels import ArmLabels, arm_labels
from fairtrial.analyse.leaderboard import Leaderboard, comparison_leaderboard, table_leaderboard
from fairtrial.analyse.pair_board import PairBoard, pair_board
from fairtrial.analyse.planning import PairPower, plan_power
from fairtrial.analyse.run import Run
from fairtrial.analyse.run_numbers import MOST_PAIRS, ResultNumbers, result_numbers
from fairtrial.analyse.score_table import SCORE, ArmScores, RunSource, ScoreTable, choose, read_scores, sources_of
from fairtrial.analyse.series_summary import SeriesSummary, summarise_series
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.variance import ArmVariance, arm_variances
from fairtrial.core.errors import FairtrialError
from fairtrial.core.types_in_threads import look_into
from fairtrial.present.words.cases import case_findings
from fairtrial.present.words.changes import moved_words
from fairtrial.stats import Aggregate
from fairtrial.store import totals
from fairtrial.store.browsing import show_counts, stored_trials
from fairtrial.store.votes import pair_count

_MAX_CASES = 100  # in each direction
_BINS = 20  # of the histogram of differences


def summary(runs: Sequence[Run]) -> RunSummary:
    """Summarise one run."""
    return runs[0].summary()


class RunNumbers(ResultNumbers, kw_only=True):
    """What the page of a run shows first: its result, and how many of its cases each filter shows."""

    counts: dict[str, int]
    waiting: bool  # whether some trials have not been run
    pairs: int  # of answers to the same case, which people can vote on


def run_numbers(runs: Sequence[Run]) -> RunNumbers:
    """Return the numbers of one run."""
    run = runs[0]
    return RunNumbers(
        **msgspec.structs.asdict(result_numbers(run)),
        counts=show_counts(run.store, run.record),
        waiting=has_waiting(run),
        pairs=pair_count(run.store, run.id),
    )


def has_waiting(run: Run) -> bool:
    """Return whether some trials of a run have not been run."""
    planned = sum(totals.planned_trials(run.store, run.plan.id, run.plan_arms))
    return stored_trials(run.store, run.id) < planned


class RunVariance(msgspec.Struct):
    """Where the uncertainty of each arm comes from."""

    arms: list[ArmVariance]


def run_variance(runs: Sequence[Run]) -> RunVariance:
    """Return the variance of every arm of one run."""
    return RunVariance(arm_variances(runs[0]))


def run_causes(runs: Sequence[Run]) -> Causes:
    """Return the failures of one run by cause."""
    return causes(runs[0])


class RunDetails(msgspec.Struct):
    """The whole comparison of a run's arms, None if there is none, and notes on how informative its cases are."""

    comparisons: Comparisons | None
    cases: list[str] = []


def run_details(runs: Sequence[Run]) -> RunDetails:
    """Compare every pair of arms of one run in detail."""
    comparisons = compared(runs[0], detailed=MOST_PAIRS)
    return RunDetails(comparisons=comparisons, cases=case_findings(runs[0]) if comparisons else [])


class SeriesNumbers(msgspec.Struct):
    """Several runs of one plan: how they vary, and what all their answers together say about cases like these."""

    summary: SeriesSummary
    over_cases: dict[str, Aggregate]  # of every arm, over the cases of all runs
    leaderboard: Leaderboard | None


def series(runs: Sequence[Run]) -> SeriesNumbers:
    """Return the numbers of several runs of one plan."""
    scores = read_scores(sources_of(runs))
    summary = summarise_series(runs)
    over_cases = {arm.label: scores.aggregate(arm) for arm in scores.arms if arm.values.get(SCORE)}
    leaderboard = comparison_leaderboard(summary.comparisons) if summary.comparisons else None
    return SeriesNumbers(summary, over_cases, leaderboard)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An arm whose score moved beyond chance since the run before."""

    arm: str
    words: str
    better: bool


class RunChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two runs on the same cases."""

    since: float  # when the earlier run began
    moved: list[Change]


def changes(runs: Sequence[Run]) -> RunChanges:
    """Return what changed from the second run to the first, over the arms that both have."""
    newer, older = runs
    scores = read_scores([RunSource("now", (newer,)), RunSource("before", (older,))])
    try:
        pairs = compare(scores, choose(scores), others=()).pairs
    except FairtrialError:
        pairs = []
    moved = [
        Change(
            arm=(arm := pair.a.rpartition("@")[0]),
            words=moved_words(arm, newer.record.suite_name, pair),
            better=pair.verdict == "better",
        )
        for pair in pairs
        if pair.verdict in ("better", "worse")
    ]
    return RunChanges(since=older.record.created_at, moved=moved)


def board(runs: Sequence[Run], by: By) -> PairBoard:
    """Rate the arms of runs by votes or verdicts on pairs."""
    return pair_board(runs, by)


class RunLabels(msgspec.Struct):
    """What people's labels say about the arms of a run, by position."""

    arms: dict[int, ArmLabels]


def labels(runs: Sequence[Run]) -> RunLabels:
    """Compare the labels of one run with its scores."""
    return RunLabels(arms=arm_labels(runs[0].store, runs[0].record))


def standings(runs: Sequence[Run], arms: list[tuple[str, str]]) -> Leaderboard:
    """Group arms of several runs into leaderboard; each is given with the id of its run, and no name occurs twice."""
    scores = read_scores([RunSource(run.id, (run,)) for run in runs])
    chosen = []
    for run_id, name in arms:
        arm = next(one for one in scores.arms if one.source.label == run_id and one.arm.name == name)
        arm.label = name
        chosen.append(arm)
    return table_leaderboard(scores._replace(arms=tuple(chosen)))


class PlanNumbers(msgspec.Struct):
    """How many cases a difference takes, for one pair of a run, and where the uncertainty of each arm comes from."""

    labels: list[str]
    pair: PairPower | None
    reason: str  # why there is nothing to plan from
    variances: list[ArmVariance]


def plan_numbers(runs: Sequence[Run], arms: tuple[str, ...], deltas: tuple[float, ...], power: float) -> PlanNumbers:
    """Plan the next run of two arms, by default of the first two."""
    scores = read_scores(sources_of(runs[0]))
    scored = [arm for arm in scores.arms if arm.values.get(SCORE)]
    chosen = [arm for name in arms for arm in scored if arm.label == name] or [
        pick for place in table_leaderboard(scores).places[:2] for pick in scored if pick.label == place.label
    ]
    found, reason = None, "two arms with scores are needed to plan a comparison"
    if len(chosen) == 2:
        try:
            found = plan_power(scores, [(chosen[0], chosen[1])], deltas=deltas, beta=1 - power).pairs[0]
        except FairtrialError as error:
            reason = str(error)
    try:
        variances = arm_variances(runs[0])
    except FairtrialError:
        variances = []
    return PlanNumbers([arm.label for arm in scored], found, "" if found else reason, variances)


class CaseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a compared pair: both values and the position of the case in each run."""

    id: str
    a: float
    b: float
    place_a: int
    place_b: int

    @property
    def difference(self) -> float:
        """The value of a minus that of b."""
        return self.a - self.b


class PairCases(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms case by case: how many cases differ by how much, and those that differ most in either direction."""

    runs: tuple[str, str]  # of the two arms
    arms: tuple[int, int]  # their positions in the plans
    sign: int  # 1 if higher is better, −1 if lower is
    largest: float  # the end of the histogram
    counts: list[int]
    ahead: list[CaseDifference]  # the first arm is better, by most first
    behind: list[CaseDifference]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, with the other arms and metrics to choose from."""

    comparisons: Comparisons
    leaderboard: Leaderboard | None  # of all arms, where every pair is compared
    labels: list[str]
    metrics: list[str]
    cases: PairCases | None = None  # of one pair


def comparison(
    runs: Sequence[Run], groups: list[tuple[str, list[str]]], arms: tuple[str, ...], metric: str, margin: float | None
) -> Compared:
    """Compare arms of several sources; each group is a label and the ids of its runs.

    A pair that was picked from one run keeps the interval that it has among all pairs of that run.
    """
    by_id: dict[str, Any] = {run.id: run for run in runs}
    sources = [RunSource(label, tuple(by_id[run] for run in members)) for label, members in groups]
    scores = read_scores(sources)
    pairs = choose(scores, arms)
    family = _family(scores, pairs, metric)
    comparisons = compare(scores, pairs, metric=metric, margin=margin, family=family, detailed=MOST_PAIRS)
    metrics = dict.fromkeys(name for arm in scores.arms for name in arm.values if name)
    return Compared(
        comparisons=comparisons,
        leaderboard=comparison_leaderboard(comparisons),
        labels=[arm.label for arm in scores.arms],
        metrics=list(metrics),
        cases=_pair_cases(scores, *pairs[0], metric) if len(pairs) == 1 else None,
    )


def _family(
    scores: ScoreTable, pairs: Sequence[tuple[ArmScores, ArmScores]], metric: str
) -> list[tuple[ArmScores, ArmScores]] | None:
    """Return every pair of the run that a pair was picked from, the picked one as it was asked for."""
    if len(pairs) != 1 or len(scores.sources) > 1:
        return None
    picked = {arm.label for arm in pairs[0]}
    scored = [arm for arm in scores.arms if arm.values.get(metric)]
    others = [pair for pair in combinations(scored, 2) if {arm.label for arm in pair} != picked]
    return [*pairs, *others]


def _pair_cases(scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str) -> PairCases:
    common = scores.common(a, b, metric)
    cases = [
        CaseDifference(
            id=scores.facts[key].id, a=float(x), b=float(y), place_a=int(a.places[key]), place_b=int(b.places[key])
        )
        for key, x, y in zip(common.keys, common.a, common.b, strict=True)
    ]
    sign = a.sign(metric)
    differences = np.asarray([case.difference for case in cases if case.difference])
    largest = 1.0 if not metric else float(np.max(np.abs(differences), initial=0.0)) or 1.0
    counts, _ = np.histogram(differences, bins=_BINS, range=(-largest, largest))
    most = sorted(cases, key=lambda case: -abs(case.difference))
    return PairCases(
        runs=(a.source.runs[0].id, b.source.runs[0].id),
        arms=(a.arm.position, b.arm.position),
        sign=sign,
        largest=largest,
        counts=[int(count) for count in counts],
        ahead=[case for case in most if sign * case.difference > 0][:_MAX_CASES],
        behind=[case for case in most if sign * case.difference < 0][:_MAX_CASES],
    )


look_into(RunSummary, RunNumbers, RunVariance, RunDetails, RunChanges, RunLabels)
look_into(SeriesNumbers, PlanNumbers, Compared, PairBoard, Leaderboard)
