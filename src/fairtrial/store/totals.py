"""Totals of a run, computed in SQL, for the analysis and the progress display."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, and_, case, func, or_, select

from fairtrial.core.answer import FILTERED, LIMITS, REFUSED
from fairtrial.core.experiment import Arm
from fairtrial.core.money import Cost
from fairtrial.core.score import Scale
from fairtrial.store import schema
from fairtrial.store.columns import Columns, column_batches, row_batches
from fairtrial.store.planned import Planned, planned_cases
from fairtrial.store.rows import decode, read_cost
from fairtrial.store.store import Store


class ArmTotals(NamedTuple):
    """The counts and sums of one arm."""

    stored: int
    failed: int
    scored: int
    unscored: int
    value_sum: float
    prompt_tokens: int
    completion_tokens: int
    truncated: int
    refused: int
    filtered: int
    passed_automatically: int
    first_model: str | None  # of the names in replies, in the order of the alphabet
    last_model: str | None
    cost: Cost
    limits: dict[str, int] = {}  # how many trials ended at which limit of the agent


class CaseScores:
    """One arm's mean score on each case, over the repeats that have a score, as columns in the order of cases."""

    def __init__(self) -> None:
        self.positions = array("q")
        self.means, self.weights = array("d"), array("d")
        self.repeats, self.squares = array("q"), array("d")  # how many scores a case has, and the sum of their squares
        self.clusters = array("q")  # a number per cluster; a case without a cluster gets its own, below 0
        self.clustered = False


def planned(store: Store, plan_id: str) -> Planned:
    """Return the cases of a plan."""
    with store.reading() as connection:
        return planned_cases(connection, plan_id)


def planned_trials(store: Store, plan_id: str, arms: tuple[Arm, ...]) -> list[int]:
    """Return the number of trials of each arm of a plan."""
    cases = planned(store, plan_id)
    return [cases.trials(arm) for arm in arms]


def asked_cases(store: Store, run_id: str) -> int:
    """Return how many cases of a run have the outcome of a trial."""
    table = schema.trials
    query = select(func.count(table.c.case_position.distinct())).where(table.c.run_id == run_id)
    return int(store.fetch_value(query) or 0)


def answered_cases(store: Store, run_id: str) -> dict[int, int]:
    """Return of how many cases each arm has the outcome of a trial."""
    table = schema.trials
    counts = select(table.c.arm_position, func.count(table.c.case_position.distinct())).where(table.c.run_id == run_id)
    return {row[0]: row[1] for row in store.fetch(counts.group_by(table.c.arm_position))}


def arm_totals(store: Store, run_id: str, scoring: int) -> dict[int, ArmTotals]:
    """Return counts and sums by arm position; arms without stored trials are missing."""
    trials, scores = schema.trials, schema.scores
    query = (
        select(
            trials.c.arm_position,
            func.count(),
            func.count(trials.c.failure_kind),
            func.count(scores.c.value),
            func.count(scores.c.unscored_kind),
            func.coalesce(func.sum(scores.c.value), 0.0),
            func.coalesce(func.sum(trials.c.prompt_tokens), 0),
            func.coalesce(func.sum(trials.c.completion_tokens), 0),
            *(
                func.sum(case((trials.c.finish_reason == reason, 1), else_=0))
                for reason in ("length", REFUSED, FILTERED)
            ),
            func.sum(case((scores.c.automatic, 1), else_=0)),
            func.min(trials.c.model),
            func.max(trials.c.model),
            *(func.sum(case((trials.c.limit == kind, 1), else_=0)) for kind in LIMITS),
            *_cost_sums(trials),
        )
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == scoring))
        .where(trials.c.run_id == run_id)
        .group_by(trials.c.arm_position)
    )
    first = -3 - len(LIMITS)  # after the counts and sums come limits, then costs
    return {
        row[0]: ArmTotals(*[*row[1:first], read_cost(row._mapping), _above_0(zip(LIMITS, row[first:-3], strict=True))])
        for row in store.fetch(query)
    }


def _above_0(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return {name: count for name, count in counts if count}


def answers_paid(store: Store, run_id: str) -> dict[int, tuple[int, Cost]]:
    """Return by arm position how many answers were given, and what every call for them cost."""
    trials = schema.trials
    given = (func.count() - func.count(trials.c.failure_kind)).label("answers")
    query = select(trials.c.arm_position, given, *_cost_sums(trials)).where(trials.c.run_id == run_id)
    rows = store.fetch_dicts(query.group_by(trials.c.arm_position))
    return {row["arm_position"]: (row["answers"], read_cost(row)) for row in rows}


def _cost_sums(table: Table) -> list[ColumnElement[Any]]:
    return [func.sum(table.c[name]).label(name) for name in schema.COSTS]


def case_scores(store: Store, run_id: str, plan_id: str, scoring: int) -> dict[int, CaseScores]:
    """Return the mean over repeats of every scored case, by arm position; rows are streamed, as there may be many."""
    weights, clusters = _special_cases(store, plan_id)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(clusters.values()))}
    by_arm: dict[int, CaseScores] = {}
    for arm, columns in _scores_by_arm(store, run_id, scoring):
        positions, counts, means, squares = columns
        scores = by_arm.get(arm) or by_arm.setdefault(arm, CaseScores())
        scores.positions.extend(positions)
        scores.repeats.extend(counts)
        scores.means.extend(means)
        scores.squares.extend(squares)
        scores.weights.extend([weights.get(case, 1.0) for case in positions] if weights else [1.0] * len(positions))
        own = [numbers[clusters[case]] if case in clusters else -1 - case for case in positions]
        scores.clusters.extend(own)
        scores.clustered = scores.clustered or max(own) >= 0
    return by_arm


def _scores_by_arm(store: Store, run_id: str, scoring: int) -> Iterator[tuple[int, Columns]]:
    """Stream (arm, columns) with case, count, mean and sum of squares of the scores, in the order of cases.

    The index has the rows in the order of cases and arms, so the database sorts nothing; arms are told apart here.
    """
    scores = schema.scores
    place, value = (scores.c.case_position, scores.c.arm_position), scores.c.value
    query = (
        select(scores.c.arm_position, place[0], func.count(value), func.avg(value), func.sum(value * value))
        .where(scores.c.run_id == run_id, scores.c.scoring == scoring, value.is_not(None))
        .group_by(*place)
        .order_by(*place)
    )
    for arms, *columns in column_batches(store, query):
        rows: dict[int, list[int]] = {}
        for row, arm in enumerate(arms):
            rows.setdefault(arm, []).append(row)
        for arm in sorted(rows):
            yield arm, tuple(tuple([column[row] for row in rows[arm]]) for column in columns)


def clusters_of(store: Store, plan_id: str) -> dict[int, int]:
    """Return a number for the cluster of every case that has one."""
    clusters = _special_cases(store, plan_id)[1]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(clusters.values()))}
    return {case_position: numbers[name] for case_position, name in clusters.items()}


def _special_cases(store: Store, plan_id: str) -> tuple[dict[int, float], dict[int, str]]:
    """Return the weights of cases other than 1, and the clusters of those that have one."""
    cases = schema.cases
    special = or_(cases.c.weight != 1, cases.c.cluster.is_not(None))
    query = select(cases.c.position, cases.c.weight, cases.c.cluster).where(cases.c.plan_id == plan_id, special)
    weights: dict[int, float] = {}
    clusters: dict[int, str] = {}
    for batch in row_batches(store, query):
        weights |= {position: weight for position, weight, _ in batch}
        clusters |= {position: cluster for position, _, cluster in batch if cluster is not None}
    return weights, clusters


def score_shares(store: Store, run_id: str, scoring: int) -> dict[int, tuple[int, int, int]]:
    """Return by arm position how many answers have a score, how many full marks, and how many less than half."""
    scores = schema.scores
    full, low = (func.sum(case((which, 1), else_=0)) for which in (scores.c.value >= 1, scores.c.value < 0.5))
    query = (
        select(scores.c.arm_position, func.count(), full, low)
        .where(scores.c.run_id == run_id, scores.c.scoring == scoring, scores.c.value.is_not(None))
        .group_by(scores.c.arm_position)
    )
    return {arm: (count, most, least) for arm, count, most, least in store.fetch(query)}


class TrialScores:
    """One arm's scores by case, one per repeat."""

    def __init__(self) -> None:
        self.by_case: dict[int, list[float]] = {}
        self.clusters: dict[int, str] = {}  # only of cases that have a cluster
        self.weights: dict[int, float] = {}
        self.uneven = False  # whether any case has a weight other than 1 or a cluster

    def means(self) -> dict[int, float]:
        """Return the mean over repeats of every case."""
        return {case: sum(values) / len(values) for case, values in self.by_case.items()}


def scorers(store: Store, run_id: str, scoring: int) -> dict[int, list[str]]:
    """Return the names of the scorers that scored each arm, by arm position."""
    table = schema.scores
    query = select(table.c.arm_position, table.c.scorer).where(table.c.run_id == run_id, table.c.scoring == scoring)
    names: dict[int, list[str]] = {}
    for arm, name in store.fetch(query.distinct().order_by(table.c.arm_position, table.c.scorer)):
        names.setdefault(arm, []).append(name)
    return names


def trial_scores(store: Store, run_id: str, plan_id: str, scoring: int, arms: Sequence[int]) -> dict[int, TrialScores]:
    """Return the scores of these arms by position."""
    scores, cases = schema.scores, schema.cases
    query = (
        select(scores.c.arm_position, scores.c.case_position, scores.c.value, cases.c.weight, cases.c.cluster)
        .join(cases, and_(cases.c.plan_id == plan_id, cases.c.position == scores.c.case_position))
        .where(scores.c.run_id == run_id, scores.c.scoring == scoring, scores.c.value.is_not(None))
        .where(scores.c.arm_position.in_(arms))
        .order_by(*schema.place(scores))
    )
    by_arm = {arm: TrialScores() for arm in arms}
    for batch in row_batches(store, query):
        for arm, case_position, value, weight, cluster in batch:
            scores_of_arm = by_arm[arm]
            scores_of_arm.by_case.setdefault(case_position, []).append(value)
            scores_of_arm.weights[case_position] = weight
            scores_of_arm.uneven = scores_of_arm.uneven or weight != 1 or cluster is not None
            if cluster is not None:
                scores_of_arm.clusters[case_position] = cluster
    return by_arm


class MetricScores:
    """One metric of one arm: its mean over repeats on each case, with the cases' weights."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.sums: dict[int, float] = {}
        self.counts: dict[int, int] = {}
        self.squares: dict[int, float] = {}
        self.weights: dict[int, float] = {}

    def add(self, case: int, value: float, weight: float) -> None:
        """Add a value of a case."""
        self.sums[case] = self.sums.get(case, 0.0) + value
        self.counts[case] = self.counts.get(case, 0) + 1
        self.squares[case] = self.squares.get(case, 0.0) + value * value
        self.weights[case] = weight

    def means(self) -> dict[int, float]:
        """Return the mean of every case, in the order of `weights`."""
        return {case: self.sums[case] / self.counts[case] for case in self.weights}


def metric_scores(store: Store, run_id: str, plan_id: str, scoring: int) -> dict[int, dict[str, MetricScores]]:
    """Return the metrics besides the score, by arm position and name."""
    scores, cases = schema.scores, schema.cases
    query = (
        select(scores.c.arm_position, scores.c.case_position, scores.c.metrics, cases.c.weight)
        .join(cases, and_(cases.c.plan_id == plan_id, cases.c.position == scores.c.case_position))
        .where(scores.c.run_id == run_id, scores.c.scoring == scoring, scores.c.metrics.is_not(None))
        .order_by(*schema.place(scores))
        .execution_options(yield_per=2000)
    )
    by_arm: dict[int, dict[str, MetricScores]] = {}
    with store.reading() as connection:
        for arm, case_position, metrics, weight in connection.execute(query):
            for name, (value, low, high) in decode(metrics).items():
                if value is None:
                    continue
                metric = by_arm.setdefault(arm, {}).setdefault(name, MetricScores((low, high)))
                metric.add(case_position, value, weight)
    return by_arm


class ToolRow(NamedTuple):
    """The tool use of one answer."""

    arm_position: int
    case_position: int
    tools: dict[str, tuple[int, int]] | None  # None if the target does not report tool use
    score: float | None
    weight: float


def tool_rows(store: Store, run_id: str, plan_id: str, scoring: int) -> Iterator[ToolRow]:
    """Stream every answer with the tools it used."""
    trials, scores, cases = schema.trials, schema.scores, schema.cases
    query = (
        select(
            trials.c.arm_position,
            trials.c.case_position,
            trials.c.tool_calls,
            trials.c.tools,
            scores.c.value,
            cases.c.weight,
        )
        .join(cases, and_(cases.c.plan_id == plan_id, cases.c.position == trials.c.case_position))
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == scoring))
        .where(trials.c.run_id == run_id, trials.c.failure_kind.is_(None))
        .order_by(*schema.place(trials))
        .execution_options(yield_per=2000)
    )
    with store.reading() as connection:
        for arm, case_position, calls, tools, value, weight in connection.execute(query):
            by_tool = {name: (made, failed) for name, (made, failed) in (decode(tools) or {}).items()}
            yield ToolRow(arm, case_position, None if calls is None else by_tool, value, weight)


class JudgeTotals(NamedTuple):
    """The verdicts, calls and cost of judging one arm."""

    verdicts: int
    calls: int
    cost: Cost


def judge_totals(store: Store, run_id: str, scoring: int) -> dict[int, JudgeTotals]:
    """Return verdicts, the calls made for them and their cost by arm position, excluding the cost of the answers.

    Verdicts reused from an earlier scoring took no call.
    """
    table = schema.judgements
    counts = (func.count().label("verdicts"), func.sum(table.c.asked).label("calls"))
    query = (
        select(table.c.arm_position, *counts, *_cost_sums(table))
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .group_by(table.c.arm_position)
    )
    rows = store.fetch_dicts(query)
    return {row["arm_position"]: JudgeTotals(row["verdicts"], row["calls"], read_cost(row)) for row in rows}


def latencies(store: Store, run_id: str) -> dict[int, array[float]]:
    """Return all latencies in milliseconds by arm position; answers from the cache have none."""
    return _by_arm(store, run_id, schema.trials.c.latency_ms, schema.trials.c.latency_ms.is_not(None))


def answer_costs(store: Store, run_id: str) -> dict[int, array[float]]:
    """Return what each answer cost in USD by arm position, where all of it is known; cached answers are left out."""
    table = schema.trials
    return _by_arm(store, run_id, table.c.cost_usd, table.c.failure_kind.is_(None), table.c.unknown_costs == 0)


def _by_arm(
    store: Store, run_id: str, column: ColumnElement[Any], *which: ColumnElement[bool]
) -> dict[int, array[float]]:
    """Return the values of a column by arm position, without answers from the cache."""
    table = schema.trials
    query = select(table.c.arm_position, column).where(table.c.run_id == run_id, table.c.cached.is_(False), *which)
    by_arm: dict[int, array[float]] = defaultdict(lambda: array("d"))
    for arms, values in column_batches(store, query):
        for arm, value in zip(arms, values, strict=True):
            by_arm[arm].append(value)
    return by_arm


def failure_reasons(store: Store, run_id: str, scoring: int) -> list[tuple[str, str, int]]:
    """Return (kind, message, count) of all failures and missing scores, most frequent first."""
    trials, scores = schema.trials, schema.scores
    failed = (
        select(trials.c.failure_kind, trials.c.failure_message, func.count())
        .where(trials.c.run_id == run_id, trials.c.failure_kind.is_not(None))
        .group_by(trials.c.failure_kind, trials.c.failure_message)
    )
    unscored = (
        select(scores.c.unscored_kind, scores.c.unscored_message, func.count())
        .where(scores.c.run_id == run_id, scores.c.scoring == scoring, scores.c.unscored_kind.is_not(None))
        .group_by(scores.c.unscored_kind, scores.c.unscored_message)
    )
    reasons = [(kind, message, count) for query in (failed, unscored) for kind, message, count in store.fetch(query)]
    return sorted(reasons, key=lambda reason: (-reason[2], reason[0], reason[1] or ""))


def reused_answers(store: Store, run_id: str) -> tuple[int, int]:
    """Return how many answers a run has, and how many of them were reused from earlier runs."""
    table = schema.trials
    query = select(func.count(), func.coalesce(func.sum(case((table.c.cached, 1), else_=0)), 0))
    ((answers, reused),) = store.fetch(query.where(table.c.run_id == run_id, table.c.failure_kind.is_(None)))
    return int(answers), int(reused)
