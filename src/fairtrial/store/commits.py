"""What a session has committed of late, in case a server takes the database's place that lacks it (design note 0047).

A server that copies another one is behind it by some commits, and those are gone when it takes its place. They are the
last ones: if it has one commit, it has all before. The rows of the newest are held in memory and written again; of the
earlier ones, only what they cost.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, literal_column, select

from fairtrial.core.money import Cost, total
from fairtrial.store import schema
from fairtrial.store.rows import read_cost
from fairtrial.store.statements import Rows

HELD = 32 * 2**20  # bytes of rows, roughly
_ROW = 2048  # bytes that a row takes beside its texts
_MOST = 10_000  # commits that are known
_NUMBERS = 2**32  # of transactions, as rows have them
_SETTLED = (schema.files.name, schema.attachments.name)  # rows that may be another transaction's


class _Commit(NamedTuple):
    """One transaction: its number, one of its rows, and all of them in the order in which they were written.

    Of one whose rows are not held any more: the number of its answers and what they cost.
    """

    number: int
    witness: tuple[str, dict[str, Any]]
    rows: list[Rows]
    size: int
    answers: int = 0
    cost: Cost = Cost()


class Lacking(NamedTuple):
    """What a server lacks: everything from a commit on; `answers` counts those whose rows are not held."""

    first: int
    rows: list[Rows]
    answers: int
    cost: Cost

    @property
    def everything(self) -> bool:
        """Whether the server has nothing that is known to have been committed."""
        return self.first == 0


class Commits:
    """The last commits of a session on one run, oldest first."""

    def __init__(self) -> None:
        self._commits: list[_Commit] = []
        self._held = 0  # the first whose rows are held
        self._size = 0
        self._forgotten = Cost()  # of commits of which nothing else is known

    def add(self, number: int, rows: Sequence[Rows]) -> None:
        """Remember a transaction, which is committed."""
        witness = next(
            ((table, items[-1]) for batch in rows for table, items in batch.items() if items and table not in _SETTLED),
            None,
        )
        if witness is None:
            return
        commit = _Commit(number % _NUMBERS, witness, list(rows), sum(map(_size, rows)))
        self._commits.append(commit)
        self._size += commit.size
        while self._size > HELD and self._held < len(self._commits):
            self._let_go()
        if len(self._commits) > _MOST and self._held > _MOST // 2:
            self._forgotten += total(commit.cost for commit in self._commits[: _MOST // 2])
            del self._commits[: _MOST // 2]
            self._held -= _MOST // 2

    def _let_go(self) -> None:
        """Keep of the oldest commit that is held what it cost."""
        commit = self._commits[self._held]
        table, row = commit.witness
        key = {column.name: row[column.name] for column in schema.metadata.tables[table].primary_key}
        answers = sum(len(batch.get("trials", ())) for batch in commit.rows)
        cost = total(map(_cost, commit.rows))
        self._commits[self._held] = _Commit(commit.number, (table, key), [], 0, answers, cost)
        self._size -= commit.size
        self._held += 1

    def lacking(self, connection: Connection) -> Lacking:
        """Return what the server of a connection lacks."""
        first = bisect_left(range(len(self._commits)), True, key=lambda index: not self._has(connection, index))
        rows = [batch for commit in self._commits[first:] for batch in commit.rows]
        gone = self._commits[first : self._held]
        cost, unknown = total(commit.cost for commit in gone), 0
        if first == 0 and self._forgotten != Cost():  # any of them may be gone, too
            cost, unknown = cost + Cost(charged=self._forgotten.charged, unknown=1), 1
        return Lacking(first, rows, sum(commit.answers for commit in gone) + unknown, cost)

    def forget(self, first: int) -> None:
        """Forget all commits from one on: what they wrote is in a later one, or is gone."""
        self._size -= sum(commit.size for commit in self._commits[first:])
        del self._commits[first:]
        self._held = min(self._held, first)

    def _has(self, connection: Connection, index: int) -> bool:
        """Return whether a commit is there: its row is as it, or a later one of ours, has written it."""
        name, row = self._commits[index].witness
        table = schema.metadata.tables[name]
        # The number of the transaction that wrote a row.
        number: Any = literal_column(f"{name}.xmin::text::bigint")
        query = select(number).select_from(table).where(*(column == row[column.name] for column in table.primary_key))
        return connection.scalar(query) in {commit.number for commit in self._commits[index:]}


def _size(rows: Rows) -> int:
    """Return roughly how many bytes rows take."""
    return sum(
        _ROW + sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        for items in rows.values()
        for row in items
    )


def _cost(rows: Rows) -> Cost:
    """Return what rows say that was spent."""
    return total(
        read_cost({name: row.get(prefix + name) or 0 for name in schema.COSTS})
        for items in rows.values()
        for row in items
        for prefix in ("", "user_")
    )
