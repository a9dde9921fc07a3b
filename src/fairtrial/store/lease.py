"""A session's hold on a run: its lock, and the epoch that every commit of the session asserts (design note 0041).

A lock can be lost without its holder noticing: a server drops the connection, a file system the lock, a person deletes
the file. So whoever takes a run raises its epoch, and every transaction of a session compares it first. A session whose
run was taken over writes nothing to the run any more; what it had paid for is kept with it, as late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, case, func, insert, select, update

from fairtrial.core.errors import RunLostError, StoreAwayError
from fairtrial.core.formatting import money
from fairtrial.core.money import Cost, at_most, total
from fairtrial.core.place import COLUMNS
from fairtrial.store import schema
from fairtrial.store.commits import Commits, Lacking
from fairtrial.store.dialect import Dialect, Lock, Mark
from fairtrial.store.row_hashes import with_hashes
from fairtrial.store.statements import Rows, insert_missing, write_rows
from fairtrial.text.printable import counted

NUMBERS = "numbers of runs"  # given in one transaction at a time
Writing = Callable[[], AbstractContextManager[Connection]]
_RUNS, _LEDGERS = schema.runs, schema.ledgers


class Paid(NamedTuple):
    """A row that could not be stored, and what of its cost is in no other row."""

    table: str
    row: dict[str, Any]
    cost: Cost


class RunLease:
    """A run that a session has taken. As a context manager it ends with the session."""

    def __init__(self, run_id: str, lock: Lock, dialect: Dialect, writing: Writing) -> None:
        """Take the run; `lock` is acquired already."""
        self.run_id = run_id
        self._lock, self._dialect, self._writing = lock, dialect, writing
        self._assertion: tuple[str, Any] | None = None
        self._at_risk = 0.0  # what the store says that our calls in flight may cost
        self._unknown = 0  # 1 if whoever took the run has counted that as one call of unknown cost
        self._commits = Commits()
        self._server = ""  # that of our last commit
        self._replaced = self._gone = False
        self.lost = False  # another session has taken the run
        self.late: list[tuple[str, Cost]] = []  # what was kept with the run since then: its table and its cost
        try:
            with writing() as connection:
                self._epoch = _take(connection, run_id)
                self._note(dialect.mark(connection))
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> RunLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.release()
        if self.lost and isinstance(error, Exception):
            raise RunLostError(self._words()) from None  # only now it is known what was kept

    def release(self) -> None:
        """Let others take the run."""
        self._lock.__exit__(None, None, None)

    # -- writing ---------------------------------------------------------------------------------

    @contextmanager
    def writing(self, rows: Rows | None = None) -> Iterator[Connection]:
        """Open a transaction that is committed only if the run is still ours; raise RunLostError if it is not.

        `rows` is what it writes, if that can be written again should the server be replaced by one that lacks it.
        """
        lacking: Lacking | None = None
        with self._writing() as connection:
            mark = self._dialect.mark(connection)
            if mark is not None and mark.server != self._server:
                lacking = self._write_again(connection)
            self._assert_ours(connection)
            yield connection
        if lacking is not None:
            self._commits.forget(lacking.first)
        self._note(mark, [*(lacking.rows if lacking else ()), *([rows] if rows else ())])
        if lacking is not None and lacking.answers:
            raise StoreAwayError(self._lacking_words(lacking))

    def _note(self, mark: Mark | None, rows: Sequence[Rows] = ()) -> None:
        """Note what was committed, and where."""
        if mark is not None:
            self._server = mark.server
            self._commits.add(mark.number, rows)

    def _write_again(self, connection: Connection) -> Lacking | None:
        """Write what was committed and is not on the server, which has taken the place of another."""
        self._lock.__exit__(None, None, None)  # it may still be held on the other one
        epoch = connection.scalar(_locked(select(_RUNS.c.epoch), self.run_id))
        self._replaced = epoch is None
        if epoch is None or self._epoch is None or epoch > self._epoch:
            return None
        lacking = self._commits.lacking(connection)
        if lacking.everything:  # perhaps not even our taking the run is there, and somebody else has taken it
            self._epoch = _take(connection, self.run_id)
        for batch in lacking.rows:
            write_rows(connection, self._dialect, batch)
        if lacking.cost != Cost():
            _charge(connection, self._dialect, self.run_id, lacking.cost)
        return lacking

    def _assert_ours(self, connection: Connection) -> None:
        """Compare the run's epoch with ours; no other process can raise it before this transaction ends."""
        if self._assertion is None:
            query = _locked(select(_RUNS.c.epoch), self.run_id).compile(dialect=connection.dialect)
            values = query.params if query.positiontup is None else tuple(query.params[n] for n in query.positiontup)
            self._assertion = str(query), values
        epoch = connection.exec_driver_sql(*self._assertion).scalar()
        if epoch != self._epoch:
            if not self.lost:
                charged = at_most(self._at_risk)
                self.lost, self._at_risk, self._unknown = True, charged.charged, charged.unknown
            self._gone = epoch is None
            raise RunLostError(self._words())
        self._dialect.keep_lock(self._lock)

    def add_run(self, run: dict[str, Any]) -> None:
        """Write the run, which is about to start."""
        with self._writing() as connection:
            insert_run(connection, self._dialect, {**run, "epoch": 1})
        self._epoch = 1

    def set_run(self, **values: Any) -> None:
        """Update columns of the run."""
        with self.writing() as connection:
            connection.execute(update(_RUNS).where(_RUNS.c.id == self.run_id).values(**values))

    def write(self, rows: Rows) -> None:
        """Write rows of the run, by table, in one transaction."""
        with self.writing(rows) as connection:
            write_rows(connection, self._dialect, rows)
        if "ledgers" in rows:
            self._at_risk = rows["ledgers"][-1]["at_risk_usd"]

    # -- after the run was lost ------------------------------------------------------------------

    def keep_late(self, paid: Sequence[Paid]) -> None:
        """Keep what was paid for with the run, and charge it once.

        Whoever took the run has charged it with everything that our calls in flight could cost (`_take`). The costs
        that are known by now take the place of a part of that, and the last row of our ledger that of the rest.
        """
        rows = [one for one in paid if one.table != _LEDGERS.name]
        last = [one.cost for one in paid if one.table == _LEDGERS.name and not one.row["at_risk_usd"]]
        if self._gone or not (rows or last):
            return
        cost = total(one.cost for one in rows)
        settled = self._at_risk if last else min(self._at_risk, cost.charged)
        change = total(last) + Cost(charged=-settled, unknown=-self._unknown if last else 0)
        with self._writing() as connection:
            if connection.scalar(_locked(select(_RUNS.c.epoch), self.run_id)) is None:
                self._gone = True
                return
            late = [self._late_row(number, one) for number, one in enumerate(rows, len(self.late))]
            for row in with_hashes(schema.late, late):
                connection.execute(insert(schema.late).values(row))
            if change != Cost():
                _charge(connection, self._dialect, self.run_id, change)
        self._at_risk -= settled
        self._unknown = 0 if last else self._unknown
        self.late += [(one.table, one.cost) for one in rows]

    def _late_row(self, number: int, paid: Paid) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "epoch": self._epoch,
            "number": number,
            "kind": paid.table,
            **{name: paid.row.get(name) for name in COLUMNS},
            "cost_usd": paid.cost.known,
            "charged_usd": paid.cost.charged,
            "unknown_costs": paid.cost.unknown,
            "body": msgspec.msgpack.encode(paid.row),
            "kept_at": time.time(),
        }

    def _lacking_words(self, lacking: Lacking) -> str:
        price = f" ({money(lacking.cost)})" if lacking.cost.charged else ""
        return (
            f"the server of {self._dialect.place} was replaced by one that lacks {counted(lacking.answers, 'answer')}"
            f"{price} that had been stored; what they cost stays in the run's sums, and `fairtrial resume "
            f"{self.run_id}` asks for them again"
        )

    def _words(self) -> str:
        if self._gone and self._replaced:
            return (
                f"the server of {self._dialect.place} was replaced by one that lacks run {self.run_id}, which had just "
                "begun: run the suite again"
            )
        if self._gone:
            return f"run {self.run_id} was deleted while this process worked on it: it has stopped"
        words = (
            f"another process now works on {self.run_id}, or has completed it: it took the run over while this process "
            "was out of touch with the store, so this one has stopped"
        )
        if self.late:
            cost = total(cost for _, cost in self.late)
            price = f" ({money(cost)})" if cost.charged or cost.unknown else ""
            many = counted(len(self.late), "late answer")
            words += f"; {many}{price} can be seen with `fairtrial show {self.run_id} --late`"
        return f"{words}; once the other one has ended, `fairtrial resume {self.run_id}` asks for what is missing"


def _take(connection: Connection, run_id: str) -> int | None:
    """Raise a run's epoch and return it; None if there is no such run yet.

    What calls in flight of the session before could cost when it ended, or lost the run, is charged: it may have been
    spent.
    """
    connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(epoch=_RUNS.c.epoch + 1))
    at_risk = connection.scalar(select(_LEDGERS.c.at_risk_usd).where(_LEDGERS.c.run_id == run_id))
    if at_risk:
        lost = at_most(at_risk)
        charges = {
            "charged_usd": _LEDGERS.c.charged_usd + lost.charged,
            "unknown_costs": _LEDGERS.c.unknown_costs + lost.unknown,
            "at_risk_usd": 0.0,
        }
        connection.execute(update(_LEDGERS).where(_LEDGERS.c.run_id == run_id).values(**charges))
    epoch: int | None = connection.scalar(select(_RUNS.c.epoch).where(_RUNS.c.id == run_id))
    return epoch


def _locked(query: Any, run_id: str) -> Any:
    """Restrict a query to a run whose epoch stays as it is until the transaction ends; others may refer to it."""
    return query.where(_RUNS.c.id == run_id).with_for_update(key_share=True)


def _charge(connection: Connection, dialect: Dialect, run_id: str, cost: Cost) -> None:
    """Add a cost, which may be negative, to a run's ledger."""
    empty = {"run_id": run_id, "cost_usd": 0.0, "charged_usd": 0.0, "unknown_costs": 0, "at_risk_usd": 0.0}
    connection.execute(insert_missing(dialect, _LEDGERS).values(empty))
    charged = func.coalesce(_LEDGERS.c.charged_usd, 0.0) + cost.charged
    changes = {
        "cost_usd": func.coalesce(_LEDGERS.c.cost_usd, 0.0) + cost.known,
        "charged_usd": case((charged < 0, 0.0), else_=charged),  # a rounding error
        "unknown_costs": func.coalesce(_LEDGERS.c.unknown_costs, 0) + cost.unknown,
    }
    connection.execute(update(_LEDGERS).where(_LEDGERS.c.run_id == run_id).values(**changes))


def insert_run(connection: Connection, dialect: Dialect, run: dict[str, Any]) -> None:
    """Write a run that is about to start."""
    dialect.serialise(connection, NUMBERS)
    number = select(func.coalesce(func.max(_RUNS.c.number), 0) + 1).scalar_subquery()
    fresh = {"status": "running", "scoring": 0, "created_at": time.time(), "number": number}
    connection.execute(insert(_RUNS).values({**fresh, **run}))
    connection.execute(
        insert(schema.scorings).values(run_id=run["id"], number=0, created_at=time.time(), completed=True)
    )
