"""How the trials of a run ended, and the facts about its cases, without the long texts.

Sums by case and arm are made in SQL and come as columns, batch by batch: no row of Python objects is made per trial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, case, func, or_, select

from fairtrial.core.answer import REFUSED
from fairtrial.core.score import UNRECORDED
from fairtrial.store import schema
from fairtrial.store.columns import Columns, column_batches, row_batches
from fairtrial.store.rows import decode
from fairtrial.store.store import Store

_SEPARATOR = b"\x1f"
Metrics = dict[str, tuple[float, float | None, float | None]]  # name: value, worst, best


class CaseFacts(NamedTuple):
    """The facts about a case except its texts; cases with equal input and expected answer have the same `key`."""

    position: int
    key: str
    id: str
    weight: float
    cluster: str | None
    category: str | None
    difficulty: str | None
    tags: tuple[str, ...]
    scorer: bytes | None  # the case's own scorer, if it has one
    asked: tuple[bytes | None, bytes | None] = (None, None)  # the targets and conditions that it is for; None: all
    question: str | None = None  # a hash of the input, without regard to blanks; None if the input is not known


def score_sums(store: Store, run_id: str, scoring: int) -> Iterator[Columns]:
    """Stream case, arm, and count and sum of its scores, where it has any."""
    value = schema.scores.c.value
    return column_batches(store, _score_columns(run_id, scoring, func.count(value), func.sum(value)))


def score_spreads(store: Store, run_id: str, scoring: int) -> Iterator[Columns]:
    """Stream case, arm, and sum of squares, lowest and highest of its scores, where it has any."""
    value = schema.scores.c.value
    return column_batches(
        store, _score_columns(run_id, scoring, func.sum(value * value), func.min(value), func.max(value))
    )


def _score_columns(run_id: str, scoring: int, *sums: ColumnElement[Any]) -> Select[Any]:
    return _by_case_and_arm(_scored(run_id, scoring, schema.scores.c.value.is_not(None)), schema.scores, *sums)


def failure_kinds(store: Store, run_id: str, arm: int) -> dict[str, int]:
    """Return how often the calls of an arm failed, by kind of failure."""
    trials = schema.trials
    query = select(trials.c.failure_kind, func.count()).group_by(trials.c.failure_kind)
    failed = (trials.c.run_id == run_id, trials.c.arm_position == arm, trials.c.failure_kind.is_not(None))
    return dict(store.fetch(query.where(*failed)))


def failed_trials(store: Store, run_id: str) -> Iterator[Columns]:
    """Stream case, arm and the number of trials that have no answer."""
    trials = schema.trials
    failed = select().where(trials.c.run_id == run_id, trials.c.failure_kind.is_not(None))
    return column_batches(store, _by_case_and_arm(failed, trials, func.count()))


def unscored_trials(store: Store, run_id: str, scoring: int) -> Iterator[Columns]:
    """Stream case, arm, the number of answers found to have no score, of those because of the arm, or of a recording.

    An answer without the required tool use is a failure of the arm; a judge's outage is not.
    """
    scores = schema.scores
    query = _scored(run_id, scoring, scores.c.value.is_(None), scores.c.unscored_kind.is_not(None))
    lacking = func.sum(case((scores.c.unscored_kind == "tool_use", 1), else_=0))
    unrecorded = func.sum(case((scores.c.unscored_kind == UNRECORDED, 1), else_=0))
    return column_batches(store, _by_case_and_arm(query, scores, func.count(), lacking, unrecorded))


def metric_rows(store: Store, run_id: str, scoring: int) -> Iterator[tuple[int, int, Metrics]]:
    """Stream case, arm and the metrics besides the score of every trial that has any."""
    scores = schema.scores
    over = or_(scores.c.value.is_not(None), scores.c.unscored_kind.is_not(None))
    query = _scored(run_id, scoring, scores.c.metrics.is_not(None), over).add_columns(
        scores.c.case_position, scores.c.arm_position, scores.c.metrics
    )
    place = schema.place(scores)
    for batch in row_batches(store, query.order_by(*place)):
        for position, arm, metrics in batch:
            yield position, arm, {name: item for name, item in decode(metrics).items() if item[0] is not None}


def repeat_rows(
    store: Store, run_id: str, scoring: int, arms: Sequence[int] | None
) -> Iterator[tuple[int, int, int, float | None, Metrics]]:
    """Stream case, arm, repeat, score and metrics of every scored trial of some arms, or of all."""
    scores = schema.scores
    chosen = [] if arms is None else [scores.c.arm_position.in_(arms)]
    query = _scored(run_id, scoring, scores.c.value.is_not(None), *chosen).add_columns(
        *schema.place(scores), scores.c.value, scores.c.metrics
    )
    for batch in row_batches(store, query.order_by(*schema.place(scores))):
        for position, arm, repeat, value, metrics in batch:
            yield position, arm, repeat, value, {} if metrics is None else decode(metrics)


def taken_metrics(store: Store, run_id: str) -> list[str]:
    """Return which of `latency_ms` and `cost_usd` any trial of a run has."""
    of_run = schema.trials.c.run_id == run_id
    queries = {name: select(known).where(of_run, known.is_not(None)).limit(1) for name, known in _taken().items()}
    return [name for name, query in queries.items() if store.fetch(query)]


def taken_sums(store: Store, run_id: str, scoring: int, name: str) -> Iterator[Columns]:
    """Stream case, arm, count and sum of the latency or the cost of its scored trials, where it is known."""
    trials, scores = schema.trials, schema.scores
    known = _taken()[name]
    joined = and_(schema.same_trial(trials, scores), scores.c.scoring == scoring, scores.c.value.is_not(None))
    query = select().select_from(trials).join(scores, joined).where(trials.c.run_id == run_id, known.is_not(None))
    return column_batches(store, _by_case_and_arm(query, trials, func.count(known), func.sum(known)))


def _taken() -> dict[str, ColumnElement[Any]]:
    """Return latency and cost as they are compared: answers from the cache took no time, an unknown cost is none."""
    trials = schema.trials
    return {
        "latency_ms": case((trials.c.cached.is_(False), trials.c.latency_ms)),
        "cost_usd": case((trials.c.unknown_costs == 0, trials.c.cost_usd)),
    }


def passing_scores(store: Store, run_id: str, scoring: int, least: float) -> Iterator[Columns]:
    """Stream case, arm, the number of its scores, and of those that are at least so high."""
    value = schema.scores.c.value
    passes = func.sum(case((value >= least, 1), else_=0))
    return column_batches(store, _score_columns(run_id, scoring, func.count(value), passes))


def answer_ids(store: Store, run_id: str, arm: int) -> Iterator[tuple[str, bool]]:
    """Stream the trial of every answer of an arm, and whether it was reused from an earlier run."""
    trials = schema.trials
    own = (trials.c.run_id == run_id, trials.c.arm_position == arm, trials.c.failure_kind.is_(None))
    for batch in row_batches(store, select(trials.c.trial_id, trials.c.cached).where(*own)):
        yield from ((trial, bool(cached)) for trial, cached in batch)


def guarded_sums(store: Store, run_id: str, name: str) -> Iterator[Columns]:
    """Stream case, arm, count and sum of the cost, latency or refusals of its answers, reused ones included.

    A reused answer has the cost that it had when it was given, if that is still stored.
    """
    trials = schema.trials
    answered = select().where(trials.c.run_id == run_id, trials.c.failure_kind.is_(None))
    if name != "cost":
        value = trials.c.latency_ms if name == "latency" else case((trials.c.finish_reason == REFUSED, 1.0), else_=0.0)
        return column_batches(store, _by_case_and_arm(answered, trials, func.count(value), func.sum(value)))
    given = trials.alias("given")
    own = select(trials.c.trial_id).where(trials.c.run_id == run_id, trials.c.cached)
    paid = (given.c.cached.is_(False), given.c.failure_kind.is_(None), given.c.unknown_costs == 0)
    known = select(given.c.trial_id, func.avg(given.c.cost_usd).label("usd")).where(given.c.trial_id.in_(own), *paid)
    prices = known.group_by(given.c.trial_id).subquery()
    value = case(
        (trials.c.cached, prices.c.usd),
        (trials.c.unknown_costs == 0, trials.c.cost_usd),
    )
    joined = answered.select_from(trials).outerjoin(prices, prices.c.trial_id == trials.c.trial_id)
    return column_batches(store, _by_case_and_arm(joined, trials, func.count(value), func.sum(value)))


def _scored(run_id: str, scoring: int, *which: ColumnElement[bool]) -> Select[Any]:
    scores = schema.scores
    return select().where(scores.c.run_id == run_id, scores.c.scoring == scoring, *which)


def _by_case_and_arm(query: Select[Any], table: Table, *sums: ColumnElement[Any]) -> Select[Any]:
    """Group by case, then by arm: that is the order of the rows, so the database has nothing to sort."""
    place = (table.c.case_position, table.c.arm_position)
    return query.add_columns(*place, *sums).group_by(*place)


def case_facts(store: Store, plan_id: str, *, questions: bool = False) -> Iterator[CaseFacts]:
    """Stream every case of a plan in order. Equal cases get different keys by their number of earlier occurrences.

    With `questions`, every case has the hash of its question.
    """
    table = schema.cases
    names = ("position", "id", "weight", "cluster", "category", "difficulty", "tags", "scorer", "input", "expected",
             "targets", "conditions")  # fmt: skip
    query = select(*(table.c[name] for name in names)).where(table.c.plan_id == plan_id).order_by(table.c.position)
    occurrences: dict[str, int] = {}
    for batch in row_batches(store, query):
        for row in batch:
            yield _facts(row, occurrences, questions=questions)


def _facts(row: Sequence[Any], occurrences: dict[str, int], *, questions: bool) -> CaseFacts:
    position, name, weight, cluster, category, difficulty, tags, scorer, text, expected, *asked = row
    known = bool(text) and not text.isspace()
    content = _content_key(text, expected) if known else _content_key("", f"\0{name}")
    count = occurrences[content] = occurrences.get(content, 0) + 1
    return CaseFacts(
        position=position,
        key=content if count == 1 else f"{content}-{count}",
        id=name,
        weight=weight,
        cluster=cluster,
        category=category,
        difficulty=difficulty,
        tags=tuple(decode(tags) or ()),
        scorer=scorer,
        asked=(asked[0], asked[1]),
        question=_content_key(" ".join(text.split()), None) if questions and known else None,
    )


def case_scorers(store: Store, plan_id: str) -> set[bytes | None]:
    """Return the cases' own scorers as JSON; includes None if some cases have none."""
    table = schema.cases
    query = select(table.c.scorer).where(table.c.plan_id == plan_id).distinct()
    return {scorer for (scorer,) in store.fetch(query)}


def _content_key(prompt: str, expected: Any) -> str:
    parts = (prompt, "" if expected is None else str(expected))
    return hashlib.blake2b(_SEPARATOR.join(part.encode() for part in parts), digest_size=12).hexdigest()
