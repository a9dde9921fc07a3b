"""What trials took and which of them were solved: sums by case, and the times of single trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Select, and_, case, func, or_, select

from fairtrial.store import schema
from fairtrial.store.columns import Columns, column_batches
from fairtrial.store.store import Store


def solved_sums(store: Store, run_id: str, scoring: int, least: float) -> Iterator[Columns]:
    """Stream case, arm, how many trials ended, how many were solved, what they cost as far as is known, of how many
    that is not known, their tokens, and of how many these are not known.

    A trial whose score is not known is left out: whether it was solved is unknown. Answers from the cache cost
    nothing here, and something where they come from: that is not known.
    """
    trials, scores = schema.trials, schema.scores
    unpaid = case((or_(trials.c.unknown_costs > 0, trials.c.cached), 1), else_=0)
    untold = case((trials.c.prompt_tokens.is_(None), 1), else_=0)
    query = _ended(run_id, scoring).add_columns(
        trials.c.case_position,
        trials.c.arm_position,
        func.count(),
        func.sum(case((scores.c.value >= least, 1), else_=0)),
        func.sum(trials.c.cost_usd),
        func.sum(unpaid),
        func.sum(func.coalesce(trials.c.prompt_tokens, 0) + func.coalesce(trials.c.completion_tokens, 0)),
        func.sum(untold),
    )
    return column_batches(store, query.group_by(trials.c.case_position, trials.c.arm_position))


def solve_times(store: Store, run_id: str, scoring: int, least: float, arms: Sequence[int]) -> Iterator[Columns]:
    """Stream case, arm, milliseconds and whether it was solved, of every trial of these arms that has a score."""
    trials, scores = schema.trials, schema.scores
    query = _ended(run_id, scoring).add_columns(
        trials.c.case_position,
        trials.c.arm_position,
        trials.c.latency_ms,
        case((scores.c.value >= least, 1), else_=0),
    )
    known = (scores.c.value.is_not(None), trials.c.latency_ms.is_not(None), trials.c.arm_position.in_(arms))
    return column_batches(store, query.where(*known).order_by(*schema.place(trials)))


def _ended(run_id: str, scoring: int) -> Select[tuple[()]]:
    """Return a query of the trials that failed or have a score."""
    trials, scores = schema.trials, schema.scores
    joined = and_(schema.same_trial(trials, scores), scores.c.scoring == scoring)
    over = or_(trials.c.failure_kind.is_not(None), scores.c.value.is_not(None))
    return select().select_from(trials).outerjoin(scores, joined).where(trials.c.run_id == run_id, over)
