"""Which trials of a run went wrong: those whose call failed, that have no score, or a score below the middle."""

from __future__ import annotations

from sqlalchemy import and_, or_, select

from fairtrial.core.place import Place
from fairtrial.store import schema
from fairtrial.store.store import Store

_LOW = 0.5


def failing_places(store: Store, run_id: str, scoring: int) -> list[Place]:
    """Return where these trials are, in the order of cases, arms and repeats."""
    trials, scores = schema.trials, schema.scores
    query = (
        select(*schema.place(trials))
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == scoring))
        .where(trials.c.run_id == run_id)
        .where(
            or_(trials.c.failure_kind.is_not(None), scores.c.unscored_kind.is_not(None), scores.c.value < _LOW),
        )
        .order_by(*schema.place(trials))
    )
    return [Place(*row) for row in store.fetch(query)]
