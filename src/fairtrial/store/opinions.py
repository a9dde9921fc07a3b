"""What judges and people said behind and beside the scores: verdicts, pairs of answers compared, human labels."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, func, select, update

from fairtrial.core.ids import content_hash
from fairtrial.core.judge import Judgement
from fairtrial.core.money import total
from fairtrial.core.place import COLUMNS, Place, place_of
from fairtrial.core.variables import Variables
from fairtrial.store import rows, schema
from fairtrial.store.store import RunRecord, Store


def pair_row(
    run_id: str, place: tuple[int, int, int, int], verdicts: tuple[Judgement, Judgement], variables: Variables
) -> dict[str, Any]:
    """A pair as stored; `place` is case, repeat, arm and other arm. Without both verdicts there is none."""
    case, repeat, one, other = place
    forward, backward = verdicts
    failed = next((verdict for verdict in verdicts if verdict.failure_kind is not None), None)
    return {
        "run_id": run_id,
        "judge_key": forward.judge_key,
        "prompt_hash": forward.prompt_hash,
        "case_position": case,
        "repeat": repeat,
        "arm_one": one,
        "arm_other": other,
        "judge": variables.hide(forward.judge),
        "forward": None if failed else forward.value,
        "backward": None if failed else backward.value,
        "verdicts": rows.encode([variables.hide_all(_kept(verdict)) for verdict in verdicts]),
        "asked": forward.asked + backward.asked,
        **rows.cost_columns(total(verdict.cost for verdict in verdicts)),
        "failure_kind": failed.failure_kind if failed else None,
        "failure_message": rows.message(failed.failure_message or "", variables) if failed else None,
        "judged_at": time.time(),
    }


def _kept(verdict: Judgement) -> dict[str, Any]:
    names = ("value", "reasoning", "reply", "model", "params", "prompt_tokens", "completion_tokens", "latency_ms")
    return {name: getattr(verdict, name) for name in names}


def pairs(store: Store, run_id: str, *, first: int = 0, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Pairs that were judged, by judge and arms, streamed."""
    table = schema.pairs
    query = select(table).where(table.c.run_id == run_id, table.c.case_position >= first)
    if count is not None:
        query = query.where(table.c.case_position < first + count)
    order = (table.c.judge, table.c.arm_one, table.c.arm_other, table.c.case_position, table.c.repeat)
    with store.reading() as connection:
        for row in connection.execute(query.order_by(*order).execution_options(yield_per=500)).mappings():
            yield dict(row)


def yardstick(judgements: Sequence[tuple[str | None, str]]) -> str:
    """Which judges, asked in which words, stand behind a score: (key, prompt hash) of each."""
    return content_hash(sorted({(key or "", prompt) for key, prompt in judgements}))[:16]


def add_labels(store: Store, run_id: str, scoring: int, labels: Sequence[dict[str, Any]]) -> None:
    """Write labels, each tied to the judges whose score it is held against; a labeller's earlier one is replaced."""
    table = schema.labels
    places = {place_of(label) for label in labels}
    sticks = _yardsticks(store, run_id, scoring, places)
    found = [
        {
            **label,
            "run_id": run_id,
            "yardstick": sticks[place_of(label)],
            "labelled_at": time.time(),
        }
        for label in labels
    ]
    store.write({table.name: found})


def renew_labels(store: Store, run_id: str, scoring: int) -> int:
    """Hold every label against the judges of today; how many were held against others before."""
    table = schema.labels
    found = list(labelled(store, run_id, scoring))
    stale = [row for row in found if row["stale"]]
    sticks = _yardsticks(store, run_id, scoring, {place_of(row) for row in stale})
    with store.writing() as connection:
        for row in stale:
            place = place_of(row)
            here = schema.at(table, place)
            connection.execute(update(table).where(table.c.run_id == run_id, *here).values(yardstick=sticks[place]))
    return len(stale)


def labelled(store: Store, run_id: str, scoring: int) -> Iterator[dict[str, Any]]:
    """Every label with the score it is held against (`score`), and whether that came from other judges (`stale`)."""
    table, scores = schema.labels, schema.scores
    query = (
        select(table, scores.c.value.label("score"))
        .outerjoin(scores, and_(schema.same_trial(table, scores), scores.c.scoring == scoring))
        .where(table.c.run_id == run_id)
        .order_by(*(table.c[name] for name in COLUMNS), table.c.labeller)
    )
    with store.reading() as connection:
        found = [dict(row) for row in connection.execute(query).mappings()]
    sticks = _yardsticks(store, run_id, scoring, {place_of(row) for row in found})
    for row in found:
        yield {**row, "stale": row["yardstick"] != sticks[place_of(row)]}


def _yardsticks(store: Store, run_id: str, scoring: int, places: set[Place]) -> dict[Place, str]:
    """What stands behind the scores of these trials."""
    table = schema.judgements
    columns = [table.c[name] for name in COLUMNS]
    query = (
        select(*columns, table.c.judge_key, table.c.prompt_hash)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .distinct()
        .execution_options(yield_per=2000)
    )
    found: dict[Place, list[tuple[str | None, str]]] = {place: [] for place in places}
    with store.reading() as connection:
        for row in connection.execute(query) if places else ():
            place = Place(row[0], row[1], row[2])
            if place in found:
                found[place].append((row[3], row[4]))
    return {place: yardstick(said) for place, said in found.items()}


class JudgeValues(NamedTuple):
    """Every usable verdict as columns: which judge, which answer, what value."""

    judges: list[str]
    answers: list[Place]
    judge: array[int]
    answer: array[int]
    values: array[float]


def judges_asked(store: Store, run_id: str, scoring: int) -> list[tuple[str, str | None, str]]:
    """(name, key, prompt hash) of every judge that had a say."""
    table = schema.judgements
    query = (
        select(table.c.judge, table.c.judge_key, table.c.prompt_hash)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .distinct()
        .order_by(table.c.judge)
    )
    with store.reading() as connection:
        return [(row[0], row[1], row[2]) for row in connection.execute(query)]


def has_judged(store: Store, run_id: str, judge_key: str) -> bool:
    """Whether a judge has given a usable verdict in a run."""
    table = schema.judgements
    query = select(table.c.number).where(
        table.c.run_id == run_id, table.c.judge_key == judge_key, table.c.failure_kind.is_(None)
    )
    with store.reading() as connection:
        return connection.execute(query.limit(1)).first() is not None


def reasonings(store: Store, run_id: str, scoring: int) -> Iterator[tuple[Place, str, float | None, str]]:
    """(place, judge, value, what it said or why it said nothing) of every verdict, streamed."""
    table = schema.judgements
    columns = [table.c[name] for name in COLUMNS]
    query = (
        select(*columns, table.c.judge, table.c.value, table.c.reasoning, table.c.failure_message)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .order_by(*columns, table.c.judge, table.c.number)
        .execution_options(yield_per=2000)
    )
    with store.reading() as connection:
        for row in connection.execute(query):
            said = rows.decode(row[5])
            if isinstance(said, dict):
                said = "\n".join(f"{name}: {text}" for name, text in said.items())
            yield Place(row[0], row[1], row[2]), row[3], row[4], str(said or row[6] or "")


def judge_values(store: Store, run_id: str, scoring: int) -> JudgeValues:
    """What judges said of single answers. Verdicts on pairs are left out: two orders are no repetition."""
    table, scores = schema.judgements, schema.scores
    query = (
        select(table.c.case_position, table.c.arm_position, table.c.repeat, table.c.judge, table.c.value)
        .join(scores, and_(schema.same_trial(table, scores), scores.c.scoring == table.c.scoring))
        .where(table.c.run_id == run_id, table.c.scoring == scoring, table.c.value.is_not(None))
        .where(scores.c.scorer != "pairwise", scores.c.value.is_not(None))
        .execution_options(yield_per=2000)
    )
    judges: dict[str, int] = {}
    answers: dict[Place, int] = {}
    judge, answer, values = array("q"), array("q"), array("d")
    with store.reading() as connection:
        for case_position, arm, repeat, name, value in connection.execute(query):
            judge.append(judges.setdefault(name, len(judges)))
            answer.append(answers.setdefault(Place(case_position, arm, repeat), len(answers)))
            values.append(value)
    return JudgeValues(list(judges), list(answers), judge, answer, values)


def judged_places(store: Store, run_id: str, scoring: int) -> set[Place]:
    """The answers that a judge gave a verdict on."""
    table = schema.judgements
    query = select(*(table.c[name] for name in COLUMNS)).distinct()
    here = (table.c.run_id == run_id, table.c.scoring == scoring, table.c.value.is_not(None))
    with store.reading() as connection:
        return {Place(row[0], row[1], row[2]) for row in connection.execute(query.where(*here))}


def unlabelled(store: Store, run: RunRecord, arms: Sequence[int]) -> Place | None:
    """A scored answer drawn at random, of the arm with the fewest labels, to a case that has none under it.

    Where judges score, one that a judge scored: people's marks are held against theirs.
    """
    table, scores, verdicts = schema.labels, schema.scores, schema.judgements
    by_judges = [verdicts.c.run_id == run.id, verdicts.c.scoring == run.scoring, verdicts.c.value.is_not(None)]
    with store.reading() as connection:
        labelled_cases = select(table.c.arm_position, func.count(table.c.case_position.distinct()))
        counted = labelled_cases.where(table.c.run_id == run.id).group_by(table.c.arm_position)
        counts: dict[int, int] = {row[0]: row[1] for row in connection.execute(counted)}
        judged = connection.execute(select(verdicts.c.run_id).where(*by_judges).limit(1)).first() is not None
        for arm in sorted(arms, key=lambda arm: counts.get(arm, 0)):
            done = select(table.c.case_position).where(table.c.run_id == run.id, table.c.arm_position == arm)
            drawn = (
                select(scores.c.case_position, scores.c.repeat)
                .where(scores.c.run_id == run.id, scores.c.scoring == run.scoring, scores.c.arm_position == arm)
                .where(scores.c.value.is_not(None), scores.c.case_position.not_in(done))
            )
            if judged:
                drawn = drawn.where(
                    select(verdicts.c.run_id).where(*by_judges, schema.same_trial(verdicts, scores)).exists()
                )
            found = connection.execute(drawn.order_by(func.random()).limit(1)).first()
            if found is not None:
                return Place(found[0], arm, found[1])
    return None


def label_count(store: Store, run_id: str) -> int:
    """How many labels the answers of a run have."""
    table = schema.labels
    query = select(func.count()).select_from(table).where(table.c.run_id == run_id)
    with store.reading() as connection:
        return connection.scalar(query) or 0


def forget_label(store: Store, run_id: str, place: Place, labeller: str) -> None:
    """Take a mark back."""
    table = schema.labels
    here = schema.at(table, place)
    with store.writing() as connection:
        connection.execute(delete(table).where(table.c.run_id == run_id, table.c.labeller == labeller, *here))
