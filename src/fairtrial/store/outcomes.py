"""How every trial of a run ended, and the facts about its case, without the long texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import and_, case, or_, select

from fairtrial.store import schema
from fairtrial.store.rows import decode
from fairtrial.store.store import Store

_SEPARATOR = b"\x1f"


class Ending(NamedTuple):
    """How one trial ended: with a score, with a failure caused by the arm, or with neither (`value` is None)."""

    arm: int
    case: int
    value: float | None
    metrics: dict[str, tuple[float, float | None, float | None]]  # name: value, worst, best
    failed: bool
    pending: bool  # answered, but not yet scored


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
    question: str | None = None  # a hash of the input, without regard to blanks; None if the input is not known


def endings(store: Store, run_id: str, scoring: int) -> Iterator[Ending]:
    """Stream every answered or failed trial by case, arm and repeat; the metrics include latency and cost."""
    trials, scores = schema.trials, schema.scores
    place = (trials.c.case_position, trials.c.arm_position, trials.c.repeat)
    query = (
        select(
            trials.c.arm_position,
            trials.c.case_position,
            scores.c.value,
            # An answer without the required tool use counts as a failure of the arm; a judge's outage does not.
            or_(trials.c.failure_kind.is_not(None), scores.c.unscored_kind == "tool_use"),
            and_(trials.c.failure_kind.is_(None), scores.c.value.is_(None), scores.c.unscored_kind.is_(None)),
            scores.c.metrics,
            case((trials.c.cached.is_(False), trials.c.latency_ms)),
            case((trials.c.unknown_costs == 0, trials.c.cost_usd)),
        )
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == scoring))
        .where(trials.c.run_id == run_id)
        .order_by(*place)
        .execution_options(yield_per=2000)
    )
    with store.reading() as connection:
        for row in connection.execute(query):
            metrics = {name: item for name, item in (decode(row[5]) or {}).items() if item[0] is not None}
            for name, value in (("latency_ms", row[6]), ("cost_usd", row[7])):
                if value is not None and row[2] is not None:
                    metrics.setdefault(name, (value, None, 0.0))  # lower is better
            yield Ending(row[0], row[1], row[2], metrics, bool(row[3]), bool(row[4]))


def case_facts(store: Store, plan_id: str) -> Iterator[CaseFacts]:
    """Stream every case of a plan in order. Equal cases get different keys by their number of earlier occurrences."""
    table = schema.cases
    names = ("position", "id", "input", "expected", "weight", "cluster", "category", "difficulty", "tags", "scorer")
    query = select(*(table.c[name] for name in names)).where(table.c.plan_id == plan_id).order_by(table.c.position)
    occurrences: dict[str, int] = {}
    with store.reading() as connection:
        for row in connection.execute(query.execution_options(yield_per=2000)).mappings():
            asked = " ".join(row["input"].split())
            content = _content_key(row["input"], row["expected"]) if asked else _content_key("", f"\0{row['id']}")
            occurrences[content] = occurrences.get(content, 0) + 1
            yield CaseFacts(
                position=row["position"],
                key=content if occurrences[content] == 1 else f"{content}-{occurrences[content]}",
                id=row["id"],
                weight=row["weight"],
                cluster=row["cluster"],
                category=row["category"],
                difficulty=row["difficulty"],
                tags=tuple(decode(row["tags"]) or ()),
                scorer=row["scorer"],
                question=_content_key(asked, None) if asked else None,
            )


def case_scorers(store: Store, plan_id: str) -> set[bytes | None]:
    """Return the cases' own scorers as JSON; includes None if some cases have none."""
    table = schema.cases
    query = select(table.c.scorer).where(table.c.plan_id == plan_id).distinct()
    with store.reading() as connection:
        return set(connection.scalars(query))


def _content_key(prompt: str, expected: Any) -> str:
    parts = (prompt, "" if expected is None else str(expected))
    return hashlib.blake2b(_SEPARATOR.join(part.encode() for part in parts), digest_size=12).hexdigest()
