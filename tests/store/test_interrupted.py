"""What a statement that Ctrl-C interrupts leaves behind: nothing, so that the same process can go on writing."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from fairtrial.store import schema, sqlite


class Interrupting:
    """A value on which Ctrl-C comes while it is handed to the database."""

    def __conform__(self, _: object) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_transaction_locks_nothing(store, monkeypatch):
    monkeypatch.setattr(sqlite, "PATIENCE", 0)
    insert = "INSERT INTO meta VALUES (?, ?)"
    try:
        with store.writing() as connection:
            connection.exec_driver_sql(insert, ("first", "1"))
            connection.exec_driver_sql(insert, [("second", "1"), ("third", Interrupting())])
    except KeyboardInterrupt:  # whose traceback has the statement
        with store.writing() as connection:
            connection.exec_driver_sql(insert, ("tidied", "1"))
    else:
        pytest.fail("it was not interrupted")
    names = {key for key, _ in store.fetch(select(schema.meta))}
    assert "tidied" in names and not names & {"first", "second", "third"}
