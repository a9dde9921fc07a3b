"""Several right answers, all the way: from the suite through the store into every output."""

import csv
import json
import re

import pytest

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.reports.export import export
from fairtrial.store import schema
from fairtrial.store.browsing import CaseQuery, ordered_cases


@pytest.fixture
async def run(run_suite, tmp_path, monkeypatch):
    monkeypatch.setenv("CITY", "Lutetia-of-old")
    rows = [
        {"input": "Paris", "expected": ["${CITY}", "paris"], "source": "atlas", "page": 7},
        {"input": '{"a": 1}', "expected": {"a": 1.0}, "source": None, "page": 8},
        {"input": "x", "expected": ["y", "z"], "source": "", "page": 9},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cases = [{"input": "Rome", "expected": ["${CITY}", "Rome"]}]
    return await run_suite(cases=cases, dataset="d.jsonl")


async def test_any_of_them_is_right_in_a_run(run, store):
    trials = {trial.input: trial for trial in Run.find(run.id, store).trials()}
    assert {name: trial.score for name, trial in trials.items()} == {"Rome": 1, "Paris": 1, '{"a": 1}': 1, "x": 0}
    assert trials["Rome"].notes == "matches (against 'Rome', one of 2 accepted answers)"
    assert trials["Rome"].expected == ("${CITY}", "Rome")  # the variable by its name, as everywhere
    assert trials["Paris"].expected == ("${CITY}", "paris")  # and this is a text from outside
    assert trials['{"a": 1}'].expected == '{"a":1.0}'


async def test_they_can_be_looked_for(run, store):
    assert list(ordered_cases(store, run.record, CaseQuery(text="paris"))) == [1]


@pytest.mark.slow
async def test_they_are_in_every_export(run, tmp_path):
    rows = [json.loads(line) for line in export(run, tmp_path / "r.jsonl").read_text().splitlines()]
    by_input = {row["input"]: row for row in rows}
    assert by_input["x"]["expected"] == ["y", "z"]
    assert by_input["x"]["columns"] == {"source": "", "page": 9} and by_input["Rome"]["columns"] is None
    with export(run, tmp_path / "r.csv").open(newline="") as file:
        cells = {row["input"]: row for row in csv.DictReader(file)}
    assert json.loads(cells["x"]["expected"]) == ["y", "z"] and json.loads(cells["Paris"]["columns"])["page"] == 7
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pq.read_table(export(run, tmp_path / "r.parquet")).to_pylist()
    assert [row["expected"] for row in table if row["input"] == "x"] == ['["y","z"]']
    assert "y\nor\nz" in export(run, tmp_path / "r.junit.xml").read_text()


async def test_they_are_shown(run, store, capsys):
    (trial,) = [trial for trial in run.trials() if trial.input == "x"]
    assert _run(["show", run.id, "--trial", trial.trial_id, "--store", store.address]) == 0
    assert re.search(r"^ expected +y\n +or\n +z\n", capsys.readouterr().out, re.MULTILINE)


async def test_texts_of_older_stores_stay_texts(run, store):
    with store.engine.begin() as connection:
        connection.execute(schema.cases.update().values(several=None, row_hash=None))
    assert [case.expected for case in store.cases(run.plan.id, 3, 1)] == ['["y","z"]']
