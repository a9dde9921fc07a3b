"""What pages show of a store: runs and cases, searched, filtered and sorted in SQL, a page at a time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Select, and_, case, func, or_, select

from fairtrial.store import schema
from fairtrial.store.rows import decode
from fairtrial.store.store import RunRecord, Store, run_query

Show = Literal["all", "low", "failed", "unscored", "disagreeing", "claims", "differing"]
SHOWS: tuple[Show, ...] = ("all", "low", "failed", "unscored", "disagreeing", "claims", "differing")
LOW = 0.5  # a mean below it, of 0–1, is a poor one
DISAGREEING = 0.25  # judges that are so far apart, of 0–1, do not agree


class RunQuery(NamedTuple):
    """Which runs are wanted; empty means any."""

    text: str = ""  # in the suite's name, the run's id or a tag
    suite: str = ""
    status: str = ""
    target: str = ""


class CaseQuery(NamedTuple):
    """Which cases of a run are wanted, and in which order."""

    show: Show = "all"
    text: str = ""  # in the case's id, prompt or expected answer
    category: str = ""
    difficulty: str = ""
    sort: str = ""  # "" as in the suite, `spread`, `mean` or an arm's position
    descending: bool = False


def runs_page(store: Store, wanted: RunQuery, first: int, count: int) -> tuple[list[RunRecord], int]:
    """Some of the runs that are wanted, newest first, and how many there are."""
    runs, plans, tags = schema.runs, schema.plans, schema.tags
    query = run_query()
    if wanted.text:
        tagged = select(tags.c.run_id).where(tags.c.name.contains(wanted.text, autoescape=True))
        found = or_(
            plans.c.suite_name.icontains(wanted.text, autoescape=True),
            runs.c.id.startswith(wanted.text, autoescape=True),
            runs.c.series_id.startswith(wanted.text, autoescape=True),
            runs.c.id.in_(tagged),
        )
        query = query.where(found)
    if wanted.suite:
        query = query.where(plans.c.suite_name == wanted.suite)
    if wanted.target:
        named = select(schema.plan_targets.c.plan_id).where(schema.plan_targets.c.target == wanted.target)
        query = query.where(plans.c.id.in_(named))
    # Whether a run goes on or was killed only its lock tells: both are among the running ones.
    alive = wanted.status in ("running", "interrupted")
    if wanted.status:
        query = query.where(runs.c.status.in_(["running", wanted.status]) if alive else runs.c.status == wanted.status)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(runs.c.number.desc())).mappings() if alive else None
        if rows is not None:
            living = [store.as_it_is(RunRecord(**row)) for row in rows]
            living = [record for record in living if record.status == wanted.status]
            return living[first : first + count], len(living)
        total = connection.scalar(select(func.count()).select_from(query.subquery())) or 0
        page = query.order_by(runs.c.number.desc()).offset(first).limit(count)
        records = [RunRecord(**row) for row in connection.execute(page).mappings()]
    return [store.as_it_is(record) for record in records], total


def suite_names(store: Store) -> list[str]:
    """The suites that have runs."""
    plans, runs = schema.plans, schema.runs
    query = select(plans.c.suite_name).join(runs, runs.c.plan_id == plans.c.id).distinct().order_by(plans.c.suite_name)
    with store.reading() as connection:
        return [row[0] for row in connection.execute(query)]


def kinds_of_cases(store: Store, plan_id: str) -> dict[str, list[str]]:
    """The categories and difficulties that a plan's cases have."""
    table = schema.cases
    found = {}
    with store.reading() as connection:
        for name in ("category", "difficulty"):
            query = select(table.c[name]).where(table.c.plan_id == plan_id, table.c[name].is_not(None)).distinct()
            found[name] = sorted(row[0] for row in connection.execute(query))
    return found


def ordered_cases(store: Store, run: RunRecord, wanted: CaseQuery) -> array[int]:
    """The positions of the cases that are wanted, in the order that is wanted."""
    if wanted.sort and wanted == CaseQuery(sort=wanted.sort, descending=wanted.descending):
        return _all_sorted(store, run, wanted)
    cases = schema.cases
    query = select(cases.c.position).where(cases.c.plan_id == run.plan_id)
    if wanted.text:
        texts = (cases.c.id, cases.c.input, cases.c.expected)
        query = query.where(or_(*(text.icontains(wanted.text, autoescape=True) for text in texts)))
    for name in ("category", "difficulty"):
        if getattr(wanted, name):
            query = query.where(cases.c[name] == getattr(wanted, name))
    if wanted.show != "all":
        query = query.where(cases.c.position.in_(_shown(run, wanted.show)))
    query = _sorted(query, run, wanted)
    with store.reading() as connection:
        return array("q", (row[0] for row in connection.execute(query)))


def _shown(run: RunRecord, show: Show) -> Select[Any]:
    """The positions of the cases with something of that kind."""
    trials, scores, judgements = schema.trials, schema.scores, schema.judgements
    if show == "failed":
        return select(trials.c.case_position).where(trials.c.run_id == run.id, trials.c.failure_kind.is_not(None))
    mine = and_(scores.c.run_id == run.id, scores.c.scoring == run.scoring)
    if show == "unscored":
        return select(scores.c.case_position).where(mine, scores.c.unscored_kind.is_not(None))
    if show == "low":
        means = _arm_means(run).subquery()
        return select(means.c.case_position).where(means.c.mean < LOW)
    if show == "differing":
        means = _arm_means(run).subquery()
        apart = func.max(means.c.mean) - func.min(means.c.mean)
        return select(means.c.case_position).group_by(means.c.case_position).having(apart > 0)
    said = and_(judgements.c.run_id == run.id, judgements.c.scoring == run.scoring)
    if show == "claims":
        return select(judgements.c.case_position).where(said, func.length(judgements.c.claims) > 2)
    place = (judgements.c.case_position, judgements.c.arm_position, judgements.c.repeat)
    apart = func.max(judgements.c.value) - func.min(judgements.c.value)
    split = select(*place).where(said).group_by(*place).having(apart >= DISAGREEING).subquery()
    return select(split.c.case_position)


def _arm_means(run: RunRecord) -> Select[Any]:
    """Every arm's mean on every case."""
    scores = schema.scores
    return (
        select(scores.c.case_position, scores.c.arm_position, func.avg(scores.c.value).label("mean"))
        .where(scores.c.run_id == run.id, scores.c.scoring == run.scoring, scores.c.value.is_not(None))
        .group_by(scores.c.case_position, scores.c.arm_position)
    )


def _all_sorted(store: Store, run: RunRecord, wanted: CaseQuery) -> array[int]:
    """Every case, those without a score last: without a join, which takes as long as the sorting."""
    keys = _keys(run, wanted).subquery()
    query = select(keys.c.case_position).order_by(keys.c.key.desc() if wanted.descending else keys.c.key, keys.c[0])
    every = select(schema.cases.c.position).where(schema.cases.c.plan_id == run.plan_id).order_by("position")
    with store.reading() as connection:
        found = array("q", connection.scalars(query))
        scored = set(found)
        found.extend(position for position in connection.scalars(every) if position not in scored)
    return found


def _keys(run: RunRecord, wanted: CaseQuery) -> Select[Any]:
    """What cases are sorted by."""
    means = _arm_means(run)
    if wanted.sort.isdecimal():
        means = means.where(schema.scores.c.arm_position == int(wanted.sort))
    found = means.subquery()
    key = func.max(found.c.mean) - func.min(found.c.mean) if wanted.sort == "spread" else func.avg(found.c.mean)
    return select(found.c.case_position, key.label("key")).group_by(found.c.case_position)


def _sorted(query: Select[Any], run: RunRecord, wanted: CaseQuery) -> Select[Any]:
    cases = schema.cases
    if not wanted.sort:
        return query.order_by(cases.c.position.desc() if wanted.descending else cases.c.position)
    keys = _keys(run, wanted).subquery()
    query = query.outerjoin(keys, keys.c.case_position == cases.c.position)
    missing_last = case((keys.c.key.is_(None), 1), else_=0)
    return query.order_by(missing_last, keys.c.key.desc() if wanted.descending else keys.c.key, cases.c.position)


class Cell(NamedTuple):
    """One arm's trials on one case, so far: how many there are of each kind, and their mean."""

    case: int
    arm: int
    trials: int
    scored: int
    failed: int
    unscored: int
    mean: float | None
    low: float | None
    high: float | None


def cells(store: Store, run: RunRecord, positions: Sequence[int]) -> list[Cell]:
    """What is stored of these cases, arm by arm."""
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
    with store.reading() as connection:
        return [Cell(*row) for row in connection.execute(query)]


def stamp(store: Store, run: RunRecord) -> str:
    """Changes whenever something is added to a finished run: a scoring, a label, a vote, a pair, a calibration."""
    parts = [run.status, run.scoring, run.ended_at]
    with store.reading() as connection:
        for table, when in (("labels", "labelled_at"), ("votes", "voted_at"), ("pairs", "judged_at")):
            found = schema.metadata.tables[table]
            mine = select(func.count(), func.max(found.c[when])).where(found.c.run_id == run.id)
            parts += connection.execute(mine).one()
        parts.append(connection.scalar(select(func.max(schema.calibrations.c.id))))
    return "/".join(str(part) for part in parts)


def calibrations_page(store: Store, first: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """How judges did when they were tried, newest first, and how often any was."""
    table = schema.calibrations
    query = select(table).order_by(table.c.id.desc()).offset(first).limit(count)
    with store.reading() as connection:
        total = connection.scalar(select(func.count()).select_from(table)) or 0
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [{**row, "body": decode(row["body"])} for row in rows], total


def runs_of_series(store: Store, series_id: str) -> list[RunRecord]:
    """The runs of one series, oldest first."""
    runs = schema.runs
    query = run_query().where(runs.c.series_id == series_id).order_by(runs.c.number)
    with store.reading() as connection:
        return [store.as_it_is(RunRecord(**row)) for row in connection.execute(query).mappings()]


def calibration(store: Store, name: str) -> dict[str, Any] | None:
    """One calibration, by its id."""
    table = schema.calibrations
    with store.reading() as connection:
        row = connection.execute(select(table).where(table.c.id == name)).mappings().first()
    return {**row, "body": decode(row["body"])} if row else None


def positions_of(store: Store, plan_id: str, case_id: str) -> list[int]:
    """Where a case of that id stands in a plan."""
    table = schema.cases
    query = select(table.c.position).where(table.c.plan_id == plan_id, table.c.id == case_id)
    with store.reading() as connection:
        return [row[0] for row in connection.execute(query)]
