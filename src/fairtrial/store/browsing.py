"""Queries for the web pages: runs and cases, searched, filtered and sorted in SQL, one page at a time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Select, and_, case, func, or_, select

from fairtrial.core.place import Place
from fairtrial.core.variables import display
from fairtrial.store import schema
from fairtrial.store.case_kinds import tagged_cases
from fairtrial.store.columns import column_batches
from fairtrial.store.records import RunRecord
from fairtrial.store.rows import decode
from fairtrial.store.run_queries import run_query
from fairtrial.store.store import Store
from fairtrial.store.todo import status_of
from fairtrial.store.types import json_text

Show = Literal["all", "differing", "low", "hard", "failed", "unscored", "disagreeing", "claims"]
SHOWS: tuple[Show, ...] = ("all", "differing", "low", "hard", "failed", "unscored", "disagreeing", "claims")
_FIRST_SCORES = 1000
LOW = 0.5  # a mean below this (0–1) is low
DISAGREEING = 0.25  # judges that differ by at least this much (0–1) disagree


class RunQuery(NamedTuple):
    """A filter for runs; empty fields match everything."""

    text: str = ""  # in the suite's name, the run's id or a tag
    suite: str = ""
    status: str = ""
    target: str = ""


class CaseQuery(NamedTuple):
    """A filter and an order for the cases of a run."""

    show: Show = "all"
    text: str = ""  # in the case's id, prompt or expected answer
    category: str = ""
    difficulty: str = ""
    tag: str = ""
    sort: str = ""  # "" as in the suite, `spread`, `mean` or an arm's position
    descending: bool = False


def runs_page(store: Store, filters: RunQuery, first: int, count: int) -> tuple[list[RunRecord], int]:
    """Return one page of the matching runs, newest first, and the number of matches."""
    runs, plans, tags = schema.runs, schema.plans, schema.tags
    query = run_query()
    if filters.text:
        tagged = select(tags.c.run_id).where(tags.c.name.icontains(filters.text, autoescape=True))
        matches = or_(
            plans.c.suite_name.icontains(filters.text, autoescape=True),
            runs.c.id.istartswith(filters.text, autoescape=True),
            runs.c.series_id.istartswith(filters.text, autoescape=True),
            runs.c.id.in_(tagged),
        )
        query = query.where(matches)
    if filters.suite:
        query = query.where(plans.c.suite_name == filters.suite)
    if filters.target:
        named = select(schema.plan_targets.c.plan_id).where(schema.plan_targets.c.target == filters.target)
        query = query.where(plans.c.id.in_(named))
    # Only the lock shows whether a run is still active or was killed: both are stored as running.
    needs_lock = filters.status in ("running", "interrupted")
    if filters.status:
        query = query.where(
            runs.c.status.in_(["running", filters.status]) if needs_lock else runs.c.status == filters.status
        )
    total = store.fetch_value(select(func.count()).select_from(query.subquery())) or 0
    query = query.order_by(runs.c.number.desc())
    found = store.runs_in(query if needs_lock else query.offset(first).limit(count))
    if not needs_lock:
        return found, total
    matching = [record for record in found if record.status == filters.status]
    return matching[first : first + count], len(matching)


def suite_names(store: Store) -> list[str]:
    """Return the names of all suites that have runs."""
    plans, runs = schema.plans, schema.runs
    query = select(plans.c.suite_name).join(runs, runs.c.plan_id == plans.c.id).distinct().order_by(plans.c.suite_name)
    return [name for (name,) in store.fetch(query)]


def latest_suites(store: Store, count: int) -> list[str]:
    """Return the suites that were run last, the newest first."""
    plans, runs = schema.plans, schema.runs
    newest = func.max(runs.c.number)
    query = (
        select(plans.c.suite_name)
        .join(runs, runs.c.plan_id == plans.c.id)
        .group_by(plans.c.suite_name)
        .order_by(newest.desc())
        .limit(count)
    )
    return [name for (name,) in store.fetch(query)]


def kinds_of_cases(store: Store, plan_id: str) -> dict[str, list[str]]:
    """Return the categories, difficulties and tags of a plan's cases."""
    table = schema.cases
    # In one pass: of 100,000 cases each takes a while.
    query = select(table.c.category, table.c.difficulty, table.c.tags).where(table.c.plan_id == plan_id).distinct()
    categories, difficulties, tags = (set(column) for column in zip(*store.fetch(query), strict=True))
    return {
        "category": sorted(categories - {None}),
        "difficulty": sorted(difficulties - {None}),
        "tag": sorted({tag for body in tags - {None} for tag in decode(body) or ()}),
    }


def ordered_cases(store: Store, run: RunRecord, filters: CaseQuery) -> array[int]:
    """Return the positions of the matching cases in the requested order."""
    if filters.sort and filters == CaseQuery(sort=filters.sort, descending=filters.descending):
        return _all_cases_sorted(store, run, filters)
    cases = schema.cases
    query = select(cases.c.position).where(cases.c.plan_id == run.plan_id)
    if filters.text:
        texts = (cases.c.id, cases.c.input, cases.c.expected)
        query = query.where(or_(*(text.icontains(filters.text, autoescape=True) for text in texts)))
    for name in ("category", "difficulty"):
        if getattr(filters, name):
            query = query.where(cases.c[name] == getattr(filters, name))
    if filters.show != "all":
        query = query.where(cases.c.position.in_(_filtered_positions(run, filters.show)))
    query = _sorted(query, run, filters)
    positions = _positions(store, query)
    if not filters.tag:
        return positions
    tagged = tagged_cases(store, run.plan_id, [filters.tag])
    return array("q", (position for position in positions if position in tagged))


def _filtered_positions(run: RunRecord, show: Show) -> Select[Any]:
    trials, scores, judgements = schema.trials, schema.scores, schema.judgements
    if show == "failed":
        return select(trials.c.case_position).where(trials.c.run_id == run.id, trials.c.failure_kind.is_not(None))
    of_scoring = and_(scores.c.run_id == run.id, scores.c.scoring == run.scoring)
    if show == "unscored":
        # That the value is missing is known from the index.
        missing = and_(scores.c.value.is_(None), scores.c.unscored_kind.is_not(None))
        return select(scores.c.case_position).where(of_scoring, missing)
    if show in ("low", "hard", "differing"):
        means = _arm_means(run).subquery()
        lowest, highest = func.min(means.c.mean), func.max(means.c.mean)
        wanted = {"low": lowest < LOW, "hard": highest < LOW, "differing": highest > lowest}
        return select(means.c.case_position).group_by(means.c.case_position).having(wanted[show])
    if show == "claims" and run.origin is not None:  # their judges' verdicts were not recorded one by one
        claimed = json_text(scores.c.details).contains('"unverified_claims":')
        return select(scores.c.case_position).where(of_scoring, claimed)
    verdicts = and_(judgements.c.run_id == run.id, judgements.c.scoring == run.scoring)
    if show == "claims":
        return select(judgements.c.case_position).where(verdicts, func.length(judgements.c.claims) > 2)
    place = schema.place(judgements)
    spread = func.max(judgements.c.value) - func.min(judgements.c.value)
    disputed = select(*place).where(verdicts).group_by(*place).having(spread >= DISAGREEING).subquery()
    return select(disputed.c.case_position)


def _arm_means(run: RunRecord) -> Select[Any]:
    scores = schema.scores
    return (
        select(scores.c.case_position, scores.c.arm_position, func.avg(scores.c.value).label("mean"))
        .where(scores.c.run_id == run.id, scores.c.scoring == run.scoring, scores.c.value.is_not(None))
        .group_by(scores.c.case_position, scores.c.arm_position)
    )


def _all_cases_sorted(store: Store, run: RunRecord, filters: CaseQuery) -> array[int]:
    """Return every case, those without a score last; avoids a join, which would take as long as the sorting."""
    keys = _sort_keys(run, filters).subquery()
    query = select(keys.c.case_position).order_by(keys.c.key.desc() if filters.descending else keys.c.key, keys.c[0])
    all_positions = select(schema.cases.c.position).where(schema.cases.c.plan_id == run.plan_id).order_by("position")
    positions = _positions(store, query)
    cases = store.fetch_value(select(func.count()).select_from(all_positions.subquery()))
    if cases != len(positions):
        scored = set(positions)
        positions.extend(position for position in _positions(store, all_positions) if position not in scored)
    return positions


def _positions(store: Store, query: Select[Any]) -> array[int]:
    positions = array("q")
    for (column,) in column_batches(store, query):
        positions.extend(column)
    return positions


def _sort_keys(run: RunRecord, filters: CaseQuery) -> Select[Any]:
    query = _arm_means(run)
    if filters.sort.isdecimal():
        query = query.where(schema.scores.c.arm_position == int(filters.sort))
    means = query.subquery()
    key = func.max(means.c.mean) - func.min(means.c.mean) if filters.sort == "spread" else func.avg(means.c.mean)
    return select(means.c.case_position, key.label("key")).group_by(means.c.case_position)


def _sorted(query: Select[Any], run: RunRecord, filters: CaseQuery) -> Select[Any]:
    cases = schema.cases
    if not filters.sort:
        return query.order_by(cases.c.position.desc() if filters.descending else cases.c.position)
    keys = _sort_keys(run, filters).subquery()
    query = query.outerjoin(keys, keys.c.case_position == cases.c.position)
    missing_last = case((keys.c.key.is_(None), 1), else_=0)
    return query.order_by(missing_last, keys.c.key.desc() if filters.descending else keys.c.key, cases.c.position)


class CaseCell(NamedTuple):
    """One arm's trials on one case so far: the number of each kind, and their mean."""

    case: int
    arm: int
    trials: int
    scored: int
    failed: int
    unscored: int
    mean: float | None
    low: float | None
    high: float | None


def cells(store: Store, run: RunRecord, positions: Sequence[int]) -> list[CaseCell]:
    """Return what is stored about these cases, by arm."""
    trials, scores = schema.trials, schema.scores
    query = (
        select(
            trials.c.case_position,
            trials.c.arm_position,
            func.count(),
            func.count(scores.c.value),
            func.count(trials.c.failure_kind),
            func.count(scores.c.unscored_kind),
            func.avg(scores.c.value),
            func.min(scores.c.value),
            func.max(scores.c.value),
        )
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == run.scoring))
        .where(trials.c.run_id == run.id, trials.c.case_position.in_(positions))
        .group_by(trials.c.case_position, trials.c.arm_position)
    )
    return [CaseCell(*row) for row in store.fetch(query)]


def snippets(store: Store, run: RunRecord, positions: Sequence[int], length: int) -> dict[tuple[int, int], str]:
    """Return the beginning of each arm's first answer to these cases, or why there is none, by case and arm."""
    trials = schema.trials
    text = func.substr(func.coalesce(trials.c.answer, trials.c.failure_message, ""), 1, length)
    query = select(trials.c.case_position, trials.c.arm_position, text).where(
        trials.c.run_id == run.id, trials.c.case_position.in_(positions), trials.c.repeat == 0
    )
    return {(case, arm): display(words) for case, arm, words in store.fetch(query)}


class FirstAnswer(NamedTuple):
    """An arm's first answer to a case: its score, else its status, and how it begins, or why there is none."""

    score: float | None
    status: str
    text: str


def first_answers(store: Store, run: RunRecord, position: int, length: int) -> dict[int, FirstAnswer]:
    """Return each arm's first answer to a case, by arm, with the beginning of its text."""
    trials, scores = schema.trials, schema.scores
    text = func.substr(func.coalesce(trials.c.answer, trials.c.failure_message, ""), 1, length)
    columns = (
        trials.c.failure_kind,
        scores.c.value.label("score_value"),
        scores.c.unscored_kind.label("score_unscored_kind"),
    )
    query = (
        select(trials.c.arm_position, text.label("text"), *columns)
        .outerjoin(scores, and_(schema.same_trial(trials, scores), scores.c.scoring == run.scoring))
        .where(trials.c.run_id == run.id, trials.c.case_position == position, trials.c.repeat == 0)
    )
    return {
        row["arm_position"]: FirstAnswer(row["score_value"], status_of(row), display(row["text"]))
        for row in store.fetch_dicts(query)
    }


def repeats_near(store: Store, run_id: str, place: Place, most: int) -> list[int]:
    """Return the repeats of an arm's answer to a case that are stored, at most this many before this one and after."""
    trials = schema.trials
    query = select(trials.c.repeat).where(
        trials.c.run_id == run_id,
        trials.c.case_position == place.case,
        trials.c.arm_position == place.arm,
        trials.c.repeat.between(place.repeat - most, place.repeat + most),
    )
    return [number for (number,) in store.fetch(query.order_by(trials.c.repeat))]


def runs_with_trial(store: Store, name: str) -> list[RunRecord]:
    """Return the runs that have a trial whose id begins so, newest first."""
    table = schema.trials
    having = select(table.c.run_id).where(table.c.trial_id.startswith(name, autoescape=True))
    return store.runs_in(run_query().where(schema.runs.c.id.in_(having)).order_by(schema.runs.c.number.desc()))


def stored_trials(store: Store, run_id: str) -> int:
    """Return how many trials of a run have an answer or a failure."""
    query = select(func.count()).select_from(schema.trials).where(schema.trials.c.run_id == run_id)
    return store.fetch_value(query) or 0


def metric_names(store: Store, run: RunRecord) -> list[str]:
    """Return the metrics of a run besides the score, judging by its first scores."""
    scores = schema.scores
    # Without a limit on all scores, a run that has no metrics would be read to its end.
    of_scoring = and_(scores.c.run_id == run.id, scores.c.scoring == run.scoring)
    order = schema.place(scores)  # the order of the index
    first = select(scores.c.metrics).where(of_scoring).order_by(*order).limit(_FIRST_SCORES).subquery()
    query = select(first.c.metrics).where(first.c.metrics.is_not(None)).distinct()
    return list(dict.fromkeys(name for (body,) in store.fetch(query) for name in decode(body) or ()))


def show_counts(store: Store, run: RunRecord) -> dict[str, int]:
    """Return how many cases each filter shows, without those that show none."""
    counts: dict[str, int] = {}
    with store.reading() as connection:
        for show in SHOWS[1:]:
            found = _filtered_positions(run, show).subquery()
            if count := connection.scalar(select(func.count(found.c[0].distinct()))):
                counts[show] = count
    return counts


def stamp(store: Store, run: RunRecord) -> str:
    """Return a string that changes when anything is added to a finished run, or a calibration to the store."""
    parts = [run.status, run.scoring, run.ended_at]
    with store.reading() as connection:
        for table, when in (
            ("labels", "labelled_at"),
            ("votes", "voted_at"),
            ("pairs", "judged_at"),
            ("late", "kept_at"),
        ):
            columns = schema.metadata.tables[table].c
            query = select(func.count(), func.max(columns[when])).where(columns.run_id == run.id)
            parts += connection.execute(query).one()
        parts.append(connection.scalar(select(func.max(schema.calibrations.c.id))))
    return "/".join(str(part) for part in parts)


def calibrations_page(store: Store, first: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """Return one page of the judges' calibrations, newest first, and the total number."""
    table = schema.calibrations
    query = select(table).order_by(table.c.id.desc()).offset(first).limit(count)
    total = store.fetch_value(select(func.count()).select_from(table)) or 0
    return [{**row, "body": decode(row["body"])} for row in store.fetch_dicts(query)], total


def runs_of_series(store: Store, series_id: str) -> list[RunRecord]:
    """Return the runs of a series, oldest first."""
    runs = schema.runs
    return store.runs_in(run_query().where(runs.c.series_id == series_id).order_by(runs.c.number))


def calibration(store: Store, name: str) -> dict[str, Any] | None:
    """Return the calibration with this id."""
    rows = store.fetch_dicts(select(schema.calibrations).where(schema.calibrations.c.id == name))
    return {**rows[0], "body": decode(rows[0]["body"])} if rows else None


def positions_of(store: Store, plan_id: str, case_id: str) -> list[int]:
    """Return the positions in a plan of the cases with this id."""
    table = schema.cases
    query = select(table.c.position).where(table.c.plan_id == plan_id, table.c.id == case_id)
    return [position for (position,) in store.fetch(query.order_by(table.c.position))]
