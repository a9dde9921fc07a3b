"""The hash in each row: the same in every database and version, and right after everything that writes."""

import math
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import select

from fairtrial.analyse.run import Run
from fairtrial.core.errors import StoreError
from fairtrial.store import Store, row_hashes, schema
from fairtrial.store.hash_column import HASH, content
from fairtrial.store.row_hashes import HASHED, RowHash
from fairtrial.workflows.resume import aresume
from tests.conftest import numbered
from tests.postgres import on_both

ODD = {
    "run_id": "r",
    "case_position": 1,
    "arm_position": 0,
    "repeat": 0,
    "trial_id": "tæ\0\uffff",
    "started_at": -0.0,
    "answer": "42 \U0001f600",
    "attempts": True,
    "cached": False,
    "waited_ms": 5,
    "latency_ms": math.inf,
    "first_token_ms": math.nan,
    "prompt_tokens": 3.0,
    "cost_usd": 0.1,
    "charged_usd": 1e-300,
    "unknown_costs": 0,
    "tried": b"[1]",
}
# Stores have these: whoever changes one makes `store check` call whole rows damaged. A new column is nothing in them.
KNOWN = {
    "cases": -2233706972290722043,
    "judgements": 1565926648501637149,
    "labels": 3418996040481876089,
    "late": -8605033813912902827,
    "pairs": 7800793633807286050,
    "scores": -4664134274282359388,
    "trials": -6339813106506918461,
    "turns": 4889045676113694777,
    "votes": 8263709648458171004,
}


def plain(table):
    """A row with a value in each column."""
    kinds = {float: 0.5, bool: True, int: 7, bytes: b"{}", str: "text"}
    return {str(column.name): kinds[row_hashes._kind(column.type)] for column in content(table)}


def test_hashes_are_those_that_stores_have():
    limit = {"limit": None, "limit_value": None}
    later = {"labels": {"drawn": None}, "trials": limit, "cases": {"on_limit": None}}
    assert {table.name: RowHash(table)({**plain(table), **later.get(table.name, {})}) for table in HASHED} == KNOWN


@pytest.mark.parametrize("table", HASHED, ids=lambda table: table.name)
def test_every_column_counts_and_a_later_one_changes_nothing(table):
    row_hash, row = RowHash(table), plain(table)
    for name, value in row.items():
        assert row_hash({**row, name: None}) != row_hash(row)
        other = {float: 0.75, bool: False, int: 8, bytes: b"[]", str: "texT"}[type(value)]
        assert row_hash({**row, name: other}) != row_hash(row)
    last = str(content(table)[-1].name)
    later = schema.metadata.tables[table.name].to_metadata(schema.MetaData())
    later.append_column(schema.Column("later", schema.Text, info={"since": 99}))
    for known in (row, {**row, last: None}):
        assert RowHash(later)({**known, "later": None}) == row_hash(known)


def test_what_no_column_takes_is_not_hashed():
    row = plain(schema.trials)
    for name, value in (("answer", 5), ("attempts", "many"), ("latency_ms", "soon"), ("answer", "\ud800")):
        assert RowHash(schema.trials)({**row, name: value}) is None


@on_both
def test_a_row_is_read_as_it_was_written_in_every_database(store):
    """Numbers, texts and flags come back as a database keeps them, and have the same hash."""
    plan = {"id": "p", "suite_name": "s", "suite_text": "", "suite_sha256": "", "dataset_sha256": "", "folder": ""}
    from fairtrial.store.plans import begin_plan

    begin_plan(store, {**plan, "arms": b"[]"})
    store.add_run({"id": "r", "plan_id": "p", "settings": b"{}", "context": b"{}"})
    row = {**dict.fromkeys(str(column.name) for column in content(schema.trials)), **ODD}
    store.write({"trials": [row]})
    (written,) = store.fetch_dicts(select(schema.trials))
    assert written[HASH] == RowHash(schema.trials)(row) is not None
    assert RowHash(schema.trials)(written) == written[HASH]
    store.write({"trials": [row]})  # as a retry does: attempts and costs are added up
    (again,) = store.fetch_rows(schema.trials, select(schema.trials))
    assert again["attempts"] == 2 and again["cost_usd"] == 0.2


async def test_a_row_that_was_changed_is_not_read(run_suite, store, tmp_path):
    await run_suite(cases=numbered(3))
    store.close()
    for change in ("UPDATE trials SET answer = 'x' WHERE case_position = 1", "UPDATE scores SET value = value + 0.5"):
        path = tmp_path / "changed.db"
        path.write_bytes((tmp_path / "test.db").read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(change)
            connection.commit()
        with pytest.raises(StoreError, match=r"is damaged.*store check"):
            list(Run.find("latest", Store(str(path))).trials())


async def test_an_answer_that_was_asked_for_again_has_the_hash_of_what_is_there(run_suite, model_server, store):
    state = await model_server()
    state.fault = lambda prompt: "500" if "Question 1?" in prompt else None
    run = await run_suite(targets=["openai:m"], cases=numbered(3), retry={"attempts": 1, "wait": 0.0, "max_wait": 0.0})
    del state.fault
    run = await aresume(run.id, store=store, mode="retry")
    rows = store.fetch_rows(schema.trials, select(schema.trials))
    assert run.status == "completed" and sorted(row["attempts"] for row in rows) == [1, 1, 2]
    assert None not in [row[HASH] for row in store.fetch_dicts(select(schema.trials))]
