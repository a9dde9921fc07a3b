"""Opinions of judges and people besides the scores: verdicts, pairwise comparisons and human labels."""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, delete, func, select, update

from fairtrial.core.ids import content_hash
from fairtrial.core.judge import Judgement
from fairtrial.core.money import Cost, total
from fairtrial.core.place import COLUMNS, Place, place_of
from fairtrial.core.variables import Variables
from fairtrial.store import rows, schema
from fairtrial.store.hash_column import CHANGED, HASH
from fairtrial.store.records import RunRecord
from fairtrial.store.row_hashes import hash_changed
from fairtrial.store.store import Store

_DRAWS = 100  # cases that are drawn at once, to find one that has an answer


def pair_row(
    run_id: str, place: tuple[int, int, int, int], verdicts: tuple[Judgement, Judgement], variables: Variables
) -> dict[str, Any]:
    """Return a pair's row; `place` is case, repeat, arm and other arm. A pair needs both verdicts to have a value."""
    case, repeat, arm_one, arm_other = place
    forward, backward = verdicts
    failed = next((verdict for verdict in verdicts if verdict.failure_kind is not None), None)
    return {
        "run_id": run_id,
        "judge_key": forward.judge_key,
        "prompt_hash": forward.prompt_hash,
        "case_position": case,
        "repeat": repeat,
        "arm_one": arm_one,
        "arm_other": arm_other,
        "judge": variables.hide(forward.judge),
        "forward": None if failed else forward.value,
        "backward": None if failed else backward.value,
        "verdicts": rows.encode([variables.hide_all(_stored_fields(verdict)) for verdict in verdicts]),
        "asked": forward.asked + backward.asked,
        **rows.cost_columns(total(verdict.cost for verdict in verdicts)),
        "failure_kind": failed.failure_kind if failed else None,
        "failure_message": rows.message(failed.failure_message or "", variables) if failed else None,
        "judged_at": time.time(),
    }


def _stored_fields(verdict: Judgement) -> dict[str, Any]:
    names = ("value", "reasoning", "reply", "model", "params", "prompt_tokens", "completion_tokens", "latency_ms")
    return {name: getattr(verdict, name) for name in names}


def pairs(store: Store, run_id: str, *, first: int = 0, count: int | None = None) -> Iterator[dict[str, Any]]:
    """Stream the judged pairs, ordered by judge and arms."""
    table = schema.pairs
    query = select(table).where(table.c.run_id == run_id, table.c.case_position >= first)
    if count is not None:
        query = query.where(table.c.case_position < first + count)
    order = (table.c.judge, table.c.arm_one, table.c.arm_other, table.c.case_position, table.c.repeat)
    with store.reading() as connection:
        for row in connection.execute(query.order_by(*order).execution_options(yield_per=500)).mappings():
            yield store.proven(table, dict(row))


def yardstick(judgements: Sequence[tuple[str | None, str]]) -> str:
    """Return a hash of the judges and prompts behind a score, given as (key, prompt hash) pairs."""
    return content_hash(sorted({(key or "", prompt) for key, prompt in judgements}))[:16]


def add_labels(store: Store, run_id: str, scoring: int, labels: Sequence[dict[str, Any]]) -> None:
    """Store labels, each tied to the judges whose score it is compared with; replaces a labeller's earlier label."""
    table = schema.labels
    places = {place_of(label) for label in labels}
    yardsticks = _yardsticks(store, run_id, scoring, places)
    more = {"run_id": run_id, "labelled_at": time.time()}
    store.write({table.name: [{**label, **more, "yardstick": yardsticks[place_of(label)]} for label in labels]})


def renew_labels(store: Store, run_id: str, scoring: int) -> int:
    """Tie every label to the current judges; return how many were tied to other judges before."""
    table = schema.labels
    stale = [row for row in labelled(store, run_id, scoring) if row["stale"]]
    yardsticks = _yardsticks(store, run_id, scoring, {place_of(row) for row in stale})
    with store.writing() as connection:
        for row in stale:
            place = place_of(row)
            label = (table.c.run_id == run_id, *schema.at(table, place))
            changes = {"yardstick": yardsticks[place], HASH: CHANGED}
            connection.execute(update(table).where(*label).values(changes))
            hash_changed(connection, table, *label)
    return len(stale)


def labelled(store: Store, run_id: str, scoring: int) -> Iterator[dict[str, Any]]:
    """Yield every label with the score it is compared with (`score`), and whether other judges gave it (`stale`)."""
    table, scores = schema.labels, schema.scores
    query = (
        select(table, scores.c.value.label("score"))
        .outerjoin(scores, and_(schema.same_trial(table, scores), scores.c.scoring == scoring))
        .where(table.c.run_id == run_id)
        .order_by(*schema.place(table), table.c.labeller)
    )
    labels = store.fetch_rows(table, query)
    yardsticks = _yardsticks(store, run_id, scoring, {place_of(label) for label in labels})
    for label in labels:
        yield {**label, "stale": label["yardstick"] != yardsticks[place_of(label)]}


def _yardsticks(store: Store, run_id: str, scoring: int, places: set[Place]) -> dict[Place, str]:
    """Return the yardstick of each of these trials: the judges and prompts behind its score."""
    table = schema.judgements
    columns = schema.place(table)
    query = (
        select(*columns, table.c.judge_key, table.c.prompt_hash)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .distinct()
        .execution_options(yield_per=2000)
    )
    judges: dict[Place, list[tuple[str | None, str]]] = {place: [] for place in places}
    with store.reading() as connection:
        for row in connection.execute(query) if places else ():
            place = Place(row[0], row[1], row[2])
            if place in judges:
                judges[place].append((row[3], row[4]))
    return {place: yardstick(asked) for place, asked in judges.items()}


class JudgeValues(NamedTuple):
    """Every usable verdict as columns: judge, answer and value."""

    judges: list[str]
    answers: list[Place]
    judge: array[int]
    answer: array[int]
    values: array[float]

    def without(self, judge: str | None) -> JudgeValues:
        """Return the same without the verdicts of one judge."""
        if judge not in self.judges:
            return self
        left_out = self.judges.index(judge)
        kept = [number for number, one in enumerate(self.judge) if one != left_out]
        values = array("d", (self.values[number] for number in kept))
        judges, answers = (array("q", (column[number] for number in kept)) for column in (self.judge, self.answer))
        return JudgeValues(self.judges, self.answers, judges, answers, values)


def judges_asked(store: Store, run_id: str, scoring: int) -> list[tuple[str, str | None, str]]:
    """Return (name, key, prompt hash) of every judge that was asked."""
    table = schema.judgements
    query = (
        select(table.c.judge, table.c.judge_key, table.c.prompt_hash)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .distinct()
        .order_by(table.c.judge)
    )
    return [(judge, key, prompt_hash) for judge, key, prompt_hash in store.fetch(query)]


def has_judged(store: Store, run_id: str, judge_key: str) -> bool:
    """Return whether a judge has given a usable verdict in a run."""
    table = schema.judgements
    query = select(table.c.number).where(
        table.c.run_id == run_id, table.c.judge_key == judge_key, table.c.failure_kind.is_(None)
    )
    return store.fetch_value(query.limit(1)) is not None


def reasonings(store: Store, run_id: str, scoring: int) -> Iterator[tuple[Place, str, float | None, str]]:
    """Stream (place, judge, value, reasoning or failure message) of every verdict."""
    table = schema.judgements
    columns = schema.place(table)
    query = (
        select(*columns, table.c.judge, table.c.value, table.c.reasoning, table.c.failure_message)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .order_by(*columns, table.c.judge, table.c.number)
        .execution_options(yield_per=2000)
    )
    with store.reading() as connection:
        for row in connection.execute(query):
            reasoning = rows.decode(row[5])
            if isinstance(reasoning, dict):
                reasoning = "\n".join(f"{name}: {text}" for name, text in reasoning.items())
            yield Place(row[0], row[1], row[2]), row[3], row[4], str(reasoning or row[6] or "")


def judge_values(store: Store, run_id: str, scoring: int) -> JudgeValues:
    """Return the judges' verdicts on single answers, without those on pairs: two orders are not a repetition."""
    table, scores = schema.judgements, schema.scores
    query: Select[Any] = (
        select(*schema.place(table), table.c.judge, table.c.value)
        .join(scores, and_(schema.same_trial(table, scores), scores.c.scoring == table.c.scoring))
        .where(table.c.run_id == run_id, table.c.scoring == scoring, table.c.value.is_not(None))
        .where(scores.c.scorer != "pairwise", scores.c.value.is_not(None))
        .order_by(*(table.c[name] for name in (*COLUMNS, "judge", "prompt_hash", "number")))
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


def verdict_costs(store: Store, run_id: str, scoring: int) -> dict[tuple[int, str], tuple[int, Cost]]:
    """Return by arm and judge's key how many calls its verdicts took, and their cost."""
    table = schema.judgements
    sums = [func.sum(table.c[name]).label(name) for name in schema.COSTS]
    query = (
        select(table.c.arm_position, table.c.judge_key, func.sum(table.c.asked).label("calls"), *sums)
        .where(table.c.run_id == run_id, table.c.scoring == scoring)
        .group_by(table.c.arm_position, table.c.judge_key)
    )
    found = store.fetch_dicts(query)
    return {(row["arm_position"], row["judge_key"]): (row["calls"], rows.read_cost(row)) for row in found}


def verdict_noise(store: Store, run_id: str, scoring: int) -> dict[int, tuple[float, float]]:
    """Return by arm the variance of a judge's verdicts on the same answer, and how many it gave on one as a rule.

    Arms of which no judge gave two verdicts on an answer are missing.
    """
    table = schema.judgements
    value, arm = table.c.value, table.c.arm_position
    groups = (
        select(
            arm,
            func.count(value).label("count"),
            (func.sum(value * value) - func.sum(value) * func.sum(value) / func.count(value)).label("squares"),
        )
        .where(table.c.run_id == run_id, table.c.scoring == scoring, value.is_not(None))
        .group_by(*schema.place(table), table.c.judge_key, table.c.prompt_hash)
        .subquery()
    )
    query = select(
        groups.c.arm_position,
        func.sum(groups.c.squares),
        func.sum(groups.c.count - 1),
        func.sum(groups.c.count) * 1.0 / func.count(),
    ).group_by(groups.c.arm_position)
    rows = store.fetch(query)
    return {arm: (max(0.0, squares) / freedom, each) for arm, squares, freedom, each in rows if freedom}


def judged_places(store: Store, run_id: str, scoring: int) -> set[Place]:
    """Return the answers on which a judge gave a verdict."""
    table = schema.judgements
    query = select(*schema.place(table)).distinct()
    conditions = (table.c.run_id == run_id, table.c.scoring == scoring, table.c.value.is_not(None))
    return {Place(*row) for row in store.fetch(query.where(*conditions))}


def unlabelled(store: Store, run: RunRecord, arms: Sequence[int]) -> Place | None:
    """Return a scored answer of the arm with the fewest labels, to a random case without a label in that arm.

    A case that was drawn for another arm comes first: labels correct a comparison where both arms have them.
    If judges score the run, return an answer that a judge scored, because labels are compared with judges' scores.
    """
    table, scores, verdicts = schema.labels, schema.scores, schema.judgements
    counts = label_counts(store, run.id)
    others = select(table.c.case_position).where(table.c.run_id == run.id, table.c.drawn.is_not(False))
    by_judges = [verdicts.c.run_id == run.id, verdicts.c.scoring == run.scoring, verdicts.c.value.is_not(None)]
    with store.reading() as connection:
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
            of_plan = schema.cases.c.plan_id == run.plan_id
            for answers in (drawn.where(scores.c.case_position.in_(others)), drawn):
                answer = _any_answer(connection, answers, of_plan)
                if answer is not None:
                    return Place(answer[0], arm, answer[1])
    return None


def _any_answer(connection: Connection, answers: Select[Any], of_plan: Any) -> tuple[int, int] | None:
    """Return (case, repeat) of one of these answers; every case that has one is equally likely.

    A few cases are drawn, and the first of them with an answer is taken: that is as random as choosing among all
    cases with an answer, and does not read 100,000 of them. Where nearly no case is left, all are read after all.
    """
    position, repeat = answers.selected_columns
    cases = connection.scalar(select(func.count()).select_from(schema.cases).where(of_plan)) or 0
    drawn = random.sample(range(cases), min(cases, _DRAWS))
    answered = set(connection.scalars(answers.with_only_columns(position).where(position.in_(drawn))))
    chosen = next((case for case in drawn if case in answered), None)
    if chosen is None:
        rest = connection.scalars(answers.with_only_columns(position).distinct()).all()
        if not rest:
            return None
        chosen = random.choice(rest)
    repeats = connection.scalars(answers.with_only_columns(repeat).where(position == chosen)).all()
    return chosen, random.choice(repeats)


def label_counts(store: Store, run_id: str) -> dict[int, int]:
    """Return by arm how many cases have a label."""
    table = schema.labels
    query = select(table.c.arm_position, func.count(table.c.case_position.distinct())).where(table.c.run_id == run_id)
    return dict(store.fetch(query.group_by(table.c.arm_position)))


def label_at(store: Store, run_id: str, place: Place, labeller: str) -> float | None:
    """Return the label of an answer."""
    table = schema.labels
    mine = (table.c.run_id == run_id, table.c.labeller == labeller, *schema.at(table, place))
    label: float | None = store.fetch_value(select(table.c.value).where(*mine))
    return label


def forget_label(store: Store, run_id: str, place: Place, labeller: str) -> None:
    """Delete a label."""
    table = schema.labels
    mine = (table.c.run_id == run_id, table.c.labeller == labeller, *schema.at(table, place))
    with store.writing() as connection:
        connection.execute(delete(table).where(*mine))
