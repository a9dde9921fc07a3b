"""The store of plans, runs, trials and scores, written in batches and read as streams."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from filelock import Timeout
from sqlalchemy import (
    Connection,
    Executable,
    Select,
    Table,
    and_,
    case,
    delete,
    func,
    inspect,
    or_,
    select,
    tuple_,
    update,
)

from fairtrial.core.errors import FairtrialError, NoSuchRunError, StoreError
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.place import Place
from fairtrial.core.variables import Variables
from fairtrial.store import rows, schema
from fairtrial.store.address import dialect_of
from fairtrial.store.deleting import delete_rows
from fairtrial.store.dialect import Dialect, Lock, damaged, translated
from fairtrial.store.hash_column import HASH
from fairtrial.store.lease import RunLease, insert_run
from fairtrial.store.migrations import is_current, migrate
from fairtrial.store.planned import count_by_position
from fairtrial.store.records import PlanRecord, RunRecord
from fairtrial.store.row_hashes import OF_TRIAL, RowHash, is_whole, where
from fairtrial.store.run_queries import named_query, run_query
from fairtrial.store.statements import Rows, upsert_replacing, write_rows

UNFINISHED = -1  # the case count of a plan that is still being written
_PATIENCE = 1.0
_AT_ONCE = 500  # whole trials in memory
_SCORE = RowHash(schema.scores, "score_")


class Store:
    """A store of runs. Methods are synchronous; the engine calls them from threads."""

    def __init__(self, url: str | None = None, *, create: bool = True) -> None:
        self.dialect: Dialect = dialect_of(url)
        self.path = self.dialect.place  # as it may be shown; `address` opens the store again
        self.address = self.dialect.address
        with translated(self.dialect):
            self.engine = self.dialect.open(create=create)
            self._upgrade()
        # However the process ends, closing the last connection merges the write-ahead log into the main file.
        self._finalizer = weakref.finalize(self, self.engine.dispose)

    def close(self) -> None:
        """Close the database; a SQLite store is then in one file, unless another process has it open."""
        self._finalizer()

    def _upgrade(self) -> None:
        """Bring the schema up to date in one process while the others wait."""
        with self.engine.connect() as connection:
            current = is_current(connection)
        if not current:
            with self._lock_of_schema(), self.dialect.transaction(self.engine) as connection:
                migrate(connection)

    def _lock_of_schema(self) -> Lock:
        try:
            return self.dialect.lock("schema")
        except StoreError:
            with self.engine.connect() as connection:
                is_new = not inspect(connection).has_table("meta")
            if is_new:
                raise
            raise StoreError(
                f"the store {self.path} was written by an earlier fairtrial, and cannot be upgraded where nothing can "
                "be written: copy it to a folder of your own, and read it there"
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection for reading; database errors become readable messages."""
        with translated(self.dialect), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction, which is committed completely or not at all."""
        with translated(self.dialect), self.dialect.transaction(self.engine) as connection:
            yield connection

    def fetch(self, query: Executable) -> Sequence[Any]:
        """Return all rows of a query."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def fetch_dicts(self, query: Executable) -> list[dict[str, Any]]:
        """Return all rows of a query, each as a mapping of columns."""
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def fetch_rows(self, table: Table, query: Select[Any]) -> list[dict[str, Any]]:
        """Return whole rows of a table, each of them as it was written."""
        return [self.proven(table, row) for row in self.fetch_dicts(query)]

    def proven(self, table: Table, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of a table without its hash, which shows that it is as it was written; refuse a damaged one."""
        if not is_whole(table, row):
            raise damaged(self.dialect, f"a row of {table.name}{where(row)} is not as it was written")
        del row[HASH]
        return row

    def fetch_value(self, query: Executable) -> Any:
        """Return the first column of the first row; None if there is no row."""
        with self.reading() as connection:
            return connection.scalar(query)

    # -- writing ---------------------------------------------------------------------------------

    # A session of work on a run writes through its lease, which has the same functions.

    def add_run(self, run: dict[str, Any]) -> None:
        """Write a run that is made as a whole, such as one of another tool."""
        with self.writing() as connection:
            insert_run(connection, self.dialect, run)

    def set_run(self, run_id: str, **values: Any) -> None:
        """Update columns of a run that no session can work on, as in a store in the making."""
        with self.writing() as connection:
            connection.execute(update(schema.runs).where(schema.runs.c.id == run_id).values(**values))

    def write(self, batch: Rows) -> None:
        """Write rows, by table, in one transaction: what people add to a run, and what is computed from it."""
        with self.writing() as connection:
            write_rows(connection, self.dialect, batch)

    def set_tag(self, name: str, run_id: str, series_id: str | None = None) -> str | None:
        """Tag a run, or the series that starts with it; return the id that had the tag before."""
        table = schema.tags
        row = {"name": name, "run_id": run_id, "series_id": series_id, "tagged_at": time.time()}
        with self.writing() as connection:
            tagged_id = func.coalesce(table.c.series_id, table.c.run_id)
            before: str | None = connection.scalar(select(tagged_id).where(table.c.name == name))
            connection.execute(upsert_replacing(self.dialect, table).values(row))
        return before

    def delete_tag(self, name: str) -> bool:
        """Delete a tag; return whether it existed."""
        table = schema.tags
        with self.writing() as connection:
            return connection.execute(delete(table).where(table.c.name == name)).rowcount > 0

    def delete_run(self, run_id: str) -> None:
        """Delete a run with its answers and scores, and its plan if no other run uses it."""
        with self.writing() as connection:
            delete_rows(self.dialect, connection, run_id)

    def lease(self, run_id: str) -> RunLease:
        """Take a run for a session of work: from now on, what an earlier session commits is refused."""
        return RunLease(run_id, self.lock(run_id), self.dialect, self.writing)

    def lock(self, run_id: str) -> Lock:
        """Acquire the run's lock, which only one process can hold and which is released when the process ends."""
        lock = self.dialect.lock(run_id)
        try:
            # Another process may hold the lock for a moment to check the run's status.
            lock.acquire(timeout=_PATIENCE, poll_interval=0.02)
        except Timeout:
            raise FairtrialError(f"run {run_id} is still running in another process") from None
        return lock

    # -- reading ---------------------------------------------------------------------------------

    def runs(self) -> list[RunRecord]:
        """Return all runs, newest first."""
        return self.runs_in(run_query().order_by(schema.runs.c.number.desc()))

    def runs_of(self, suite: str) -> list[RunRecord]:
        """Return all runs of a suite, newest first."""
        query = run_query().where(schema.plans.c.suite_name == suite)
        return self.runs_in(query.order_by(schema.runs.c.number.desc()))

    def newest_run(self) -> RunRecord:
        """Return the run that was created last."""
        newest = self.runs_in(run_query().order_by(schema.runs.c.number.desc()).limit(1))
        if not newest:
            raise NoSuchRunError("there is no run in this store yet; `fairtrial run SUITE` creates one")
        return newest[0]

    def candidates(self, *names: str) -> list[RunRecord]:
        """Return the runs whose id or series begins with one of these names, or that have it as their number."""
        return self.runs_in(named_query(names))

    def runs_in(self, query: Select[Any]) -> list[RunRecord]:
        """Return the runs that a `run_query` selects."""
        return [self.with_live_status(RunRecord(**row)) for row in self.fetch_dicts(query)]

    def with_live_status(self, run: RunRecord) -> RunRecord:
        """Return the run, marked as interrupted if its process was killed: its lock is then released."""
        if run.status == "running" and not self.dialect.is_locked(run.id):
            return msgspec.structs.replace(run, status="interrupted")
        return run

    def run_of_id(self, run_id: str) -> RunRecord:
        """Return the run with exactly this id."""
        runs = self.runs_in(run_query().where(schema.runs.c.id == run_id))
        if not runs:
            raise FairtrialError(f"there is no run `{run_id}` in this store")
        return runs[0]

    def find_run(self, name: str) -> RunRecord:
        """Return the run with this id, tag, number or unambiguous id prefix, or the `latest`."""
        newest = self.newest_run()
        if name == "latest":
            return newest
        tagged = self.tags().get(name)
        all_runs = self.candidates(name, tagged or name)
        matches = [run for run in all_runs if run.id in (name, tagged)]
        matches = matches or [run for run in all_runs if str(run.number) == name]
        matches = matches or [run for run in all_runs if run.id.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        series = [run for run in all_runs if run.series_id and run.series_id.startswith(tagged or name)]
        if not matches and series:
            ids = ", ".join(run.id for run in series[::-1])
            raise FairtrialError(f"`{name}` is a series: choose one of its runs ({ids})")
        if not matches:
            raise NoSuchRunError(f"there is no run `{name}` and no tag with that name; `fairtrial list` shows them all")
        ids = ", ".join(run.id for run in matches[:5])
        raise FairtrialError(f"`{name}` matches {len(matches)} runs ({ids}); give more of the id")

    def tags(self) -> dict[str, str]:
        """Return the tags of runs and series with their ids."""
        table = schema.tags
        query = select(table.c.name, func.coalesce(table.c.series_id, table.c.run_id))
        return dict(self.fetch(query))

    def find_runs(self, name: str) -> list[RunRecord]:
        """Return the run with this id or tag, or all runs of the series with this id or tag, oldest first."""
        tags = self.tags()
        all_runs = self.candidates(name, tags.get(name, name))
        if name not in tags and any(str(run.number) == name for run in all_runs):
            return [self.find_run(name)]
        prefix = tags.get(name, name)
        series = [run for run in all_runs if run.series_id is not None and run.series_id.startswith(prefix)]
        if not series or len({run.series_id for run in series}) > 1:
            return [self.find_run(name)]
        if any(run.id.startswith(prefix) for run in all_runs):
            raise FairtrialError(f"`{name}` matches both a run and a series; give more of the id")
        return series[::-1]

    def series_of(self, name: str) -> list[RunRecord]:
        """Return the runs of this series, or of the series that this run belongs to, oldest first."""
        runs = self.find_runs(name)
        series = runs[0].series_id
        of_series = run_query().where(schema.runs.c.series_id == series).order_by(schema.runs.c.number)
        return runs if series is None else self.runs_in(of_series)

    def plan(self, plan_id: str) -> PlanRecord:
        """Return a stored plan."""
        with self.reading() as connection:
            row = connection.execute(select(schema.plans).where(schema.plans.c.id == plan_id)).mappings().first()
            if row is None:
                raise StoreError(f"the plan {plan_id} is not in this store")
            if row["case_count"] != UNFINISHED:
                return PlanRecord(**row)
            return PlanRecord(**{**row, "case_count": count_by_position(connection, plan_id)}, unfinished=True)

    def arms(self, plan: PlanRecord, variables: Variables | None = None) -> tuple[Arm, ...]:
        """Return a plan's arms: with `variables` filled in if given, otherwise for display."""
        return rows.read_arms(plan.arms, variables)

    def cases(self, plan_id: str, first: int, count: int, variables: Variables | None = None) -> list[Case]:
        """Return a slice of a plan's cases."""
        table = schema.cases
        query = (
            select(table)
            .where(table.c.plan_id == plan_id, table.c.position >= first, table.c.position < first + count)
            .order_by(table.c.position)
        )
        with self.reading() as connection:
            found = connection.execute(query)
            names = tuple(found.keys())
            stored = [dict(zip(names, row, strict=True)) for row in found.all()]
        return [rows.read_case(self.proven(table, row), variables) for row in stored]

    def cases_at(self, plan_id: str, positions: Sequence[int], variables: Variables | None = None) -> list[Case]:
        """Return these cases of a plan in the given order."""
        table = schema.cases
        query = select(table).where(table.c.plan_id == plan_id, table.c.position.in_(positions))
        with self.reading() as connection:
            found = connection.execute(query)
            names = tuple(found.keys())
            by_position = {row.position: row for row in found.all()}
        ordered = (dict(zip(names, by_position[position], strict=True)) for position in positions)
        return [rows.read_case(self.proven(table, row), variables) for row in ordered]

    def trial_rows(
        self,
        run_id: str,
        scoring: int,
        *,
        first: int = 0,
        count: int | None = None,
        cases: Sequence[int] | None = None,
        places: Sequence[Place] | None = None,
        trial: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Stream the trials with their score columns (prefixed `score_`), ordered by position."""
        table, scores = schema.trials, schema.scores
        score_columns = [column.label(f"score_{column.name}") for column in scores.c if column.name not in OF_TRIAL]
        query = (
            select(table, *score_columns)
            .outerjoin(scores, and_(schema.same_trial(table, scores), scores.c.scoring == scoring))
            .where(table.c.run_id == run_id, table.c.case_position >= first)
            .order_by(*schema.place(table))
        )
        if self.dialect.reads_all:  # answers may be very long
            query = query.execution_options(yield_per=_AT_ONCE)
        if count is not None:
            query = query.where(table.c.case_position < first + count)
        if cases is not None:
            query = query.where(table.c.case_position.in_(cases))
        if places is not None:
            # The cases alone would not be enough, but SQLite uses its index only for them.
            query = query.where(table.c.case_position.in_({place.case for place in places}))
            query = query.where(tuple_(*schema.place(table)).in_(places))
        if trial is not None:
            query = query.where(or_(table.c.trial_id == trial, table.c.trial_id.startswith(trial)))
        with self.reading() as connection:
            for found in connection.execute(query).mappings():
                row = dict(found)
                if row["score_scoring"] is not None and not _SCORE.is_of(row):
                    raise damaged(self.dialect, f"a score{where(row)} is not as it was written")
                del row[f"score_{HASH}"]
                yield self.proven(table, row)

    def cached_answer(self, trial_id: str, run_id: str, series_id: str | None) -> dict[str, Any] | None:
        """Return the newest answer to the same trial from an earlier run outside this series.

        Of a series, the first run comes before all others: those asked the same again to know more, and their answers
        are not a later version of it.
        """
        table, runs = schema.trials, schema.runs
        firsts = select(func.min(runs.c.number)).where(runs.c.series_id.is_not(None)).group_by(runs.c.series_id)
        again = case((runs.c.series_id.is_(None), 0), (runs.c.number.in_(firsts), 0), else_=1)
        query = (
            select(table)
            .join(runs, runs.c.id == table.c.run_id)
            .where(table.c.trial_id == trial_id, table.c.run_id != run_id, table.c.failure_kind.is_(None))
            .order_by(again, runs.c.number.desc())
            .limit(1)
        )
        if series_id is not None:
            query = query.where(or_(runs.c.series_id.is_(None), runs.c.series_id != series_id))
        return next(iter(self.fetch_rows(table, query)), None)

    def judgements(self, run_id: str, place: Place, scoring: int | None = None) -> list[dict[str, Any]]:
        """Return every verdict on a trial's answer, in one scoring or in all."""
        table = schema.judgements
        query = select(table).where(table.c.run_id == run_id, *schema.at(table, place))
        if scoring is not None:
            query = query.where(table.c.scoring == scoring)
        return self.fetch_rows(table, query.order_by(table.c.judge, table.c.number))
