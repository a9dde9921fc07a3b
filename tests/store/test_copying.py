"""Copying runs between stores of either kind: every row arrives, whatever interrupts it."""

import hashlib
import json

import pytest
from sqlalchemy import select, update

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run as command_line
from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.reports.export import export
from fairtrial.store import Store, copying, opinions, schema
from fairtrial.store.calibrations import add_calibration
from fairtrial.store.checking import check_store
from fairtrial.store.copying import COPYING, copy_calibrations, copy_runs, find_copied
from fairtrial.store.votes import Vote, add_vote
from fairtrial.workflows.resume import arescore
from tests.conftest import numbered
from tests.plans import add_plan
from tests.postgres import PASSWORD, on_both

JUDGE = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5}, "otherwise": 1}}}
TARGETS = [
    {"id": name, "target": "mock:x", "options": {"answer": f"{name}\0 answer"}} for name in ("good", "poor")
]  # fmt: skip


@pytest.fixture
async def filled(run_suite, store) -> Run:
    """A run with everything that a run can have."""
    first = await run_suite(targets=TARGETS, scorer="golden_judge", judge=JUDGE, repeats=2, cases=numbered(8))
    run = await arescore(first.id, scorer={"type": "regex"}, store=store)
    label = {
        "case_position": 0,
        "arm_position": 0,
        "repeat": 0,
        "labeller": "me",
        "value": 1.0,
        "note": None,
        "drawn": True,
    }
    opinions.add_labels(store, run.id, run.record.scoring, [label])
    vote = {"case_position": 1, "repeat": 0, "arm_one": 0, "arm_other": 1, "choice": "tie", "left": 0}
    add_vote(store, run.id, Vote(**vote))
    store.set_tag("release", run.id)
    add_calibration(store,
        {
            "id": "c", "judge": "j", "judge_key": "k", "prompt_hash": "h", "rating": "good", "body": b"{}",
            "created_at": 1.0,
        }
    )  # fmt: skip
    file = {"sha256": "abc", "media": "image/png", "body": b"\0\x89PNG"}
    place = {"case_position": 0, "arm_position": 0, "repeat": 0, "name": "page.png", "sha256": "abc"}
    store.write({"files": [file], "attachments": [{"run_id": run.id, **place}]})
    return Run.find(run.id, store)


@pytest.fixture
def other(store, tmp_path, request):
    """An empty store of the other kind."""
    address = (
        str(tmp_path / "other.db") if store.dialect.name == "postgresql" else request.getfixturevalue("postgres_url")
    )
    opened = Store(address)
    yield opened
    opened.close()


def _rows(store: Store) -> dict[str, list]:
    """All rows of a store that are copied."""
    with store.reading() as connection:
        tables = [table for name, table in schema.metadata.tables.items() if name not in ("digests", "meta")]
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in tables
        }


@on_both
@pytest.mark.slow
async def test_all_of_a_store_arrives_and_nothing_is_copied_twice(filled, store, other, tmp_path):
    (result,) = copy_runs(store, other, find_copied(store, []))
    assert copy_calibrations(store, other) == 1 and copy_calibrations(store, other) == 0
    assert result.outcome == "copied" and result.rows > 100
    assert _rows(other) == _rows(store)
    for name, opened in (("here", store), ("there", other)):
        export(Run.find("release", opened), tmp_path / f"{name}.jsonl")
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    (again,) = copy_runs(store, other, find_copied(store, ["release"]))
    assert again.outcome == "already there" and again.sha256 == result.sha256
    (back,) = copy_runs(other, store, other.runs())
    assert back.outcome == "already there"


class PowerCutError(Exception):
    pass


@on_both
@pytest.mark.slow
async def test_copying_goes_on_where_it_was_interrupted(filled, store, other, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 5)
    whole = sum(len(rows) for name, rows in _rows(store).items())
    seen: list[str] = []
    write = copying._write

    def cut(target, table, batch) -> None:
        write(target, table, batch)
        seen.append(table.name)
        if seen.count("scores") == 3:
            raise PowerCutError

    with pytest.raises(PowerCutError), monkeypatch.context() as patch:
        patch.setattr(copying, "_write", cut)
        list(copy_runs(store, other, store.runs()))
    unfinished = other.find_run(filled.id)
    assert (unfinished.status, unfinished.reason) == ("interrupted", COPYING)
    assert len(_rows(other)["scores"]) == 15
    (result,) = copy_runs(store, other, store.runs())
    assert result.outcome == "copied" and result.rows < whole - 32 - 15  # trials and some scores were there
    copy_calibrations(store, other)
    assert _rows(other) == _rows(store) and other.find_run(filled.id).status == filled.status


@on_both
@pytest.mark.slow
async def test_a_run_that_differs_is_left_as_it_is(filled, store, other):
    list(copy_runs(store, other, store.runs()))
    other.set_run(filled.id, scoring=0)
    with other.writing() as connection:
        connection.execute(schema.trials.delete().where(schema.trials.c.case_position == 0))
    (result,) = copy_runs(store, other, store.runs())
    assert result.outcome == "skipped"
    assert "runs: other content" in result.reason and "trials: 32 rows here, 28 there" in result.reason
    with store.lease(filled.id):
        store.set_run(filled.id, status="running")
        (result,) = copy_runs(store, other, store.runs())
        assert result.outcome == "skipped" and "still running" in result.reason


@on_both
@pytest.mark.slow
async def test_what_does_not_arrive_as_it_was_is_noticed(filled, store, other, monkeypatch):
    write = copying._write

    def altered(target: Store, table, batch: list) -> None:
        write(target, table, [{**row, "answer": "other"} for row in batch] if table is schema.trials else batch)

    monkeypatch.setattr(copying, "_write", altered)
    with pytest.raises(StoreError, match=r"did not arrive as it was .trials: other content"):
        list(copy_runs(store, other, store.runs()))
    assert other.find_run(filled.id).reason == COPYING


@on_both
@pytest.mark.slow
async def test_from_the_command_line(run_suite, store, other, capsys):
    first, second = [await run_suite(cases=numbered(3)) for _ in range(2)]
    command = ["store", "copy", store.address, other.address]
    assert command_line([*command, "--run", second.id, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["id"] for run in document["runs"]] == [second.id] and document["target"] == other.path
    assert command_line(command) == 0
    shown = capsys.readouterr().out
    assert "1 run copied and verified, 1 already there: " in shown and PASSWORD not in shown
    assert {run.id: run.number for run in other.runs()} == {first.id: 1, second.id: 2}
    assert command_line(["store", "check", "--store", other.address]) == 0
    assert "is intact" in capsys.readouterr().out


@pytest.mark.slow
@on_both
async def test_numbers_that_are_taken_are_not_given_twice(run_suite, store, other):
    await run_suite()
    plan = dict.fromkeys(("suite_name", "suite_text", "suite_sha256", "dataset_sha256", "folder"), "")
    add_plan(other, {**plan, "id": "p", "arms": b"[]"}, [], None)
    other.add_run({"id": "x", "plan_id": "p", "series_id": None, "settings": b"{}", "context": b"{}"})
    list(copy_runs(store, other, store.runs()))
    assert sorted(run.number for run in other.runs()) == [1, 2]


def test_a_store_is_not_copied_to_itself(store):
    with pytest.raises(FairtrialError, match="to itself"):
        list(copy_runs(store, store, []))


@on_both
async def test_a_copy_is_proven_by_the_hashes_of_the_original(filled, store, other):
    """They are copied, not made anew: what was damaged before stays so."""
    with store.writing() as connection:
        real = hashlib.sha256(b"\0\x89PNG").hexdigest()
        for table in (schema.files, schema.attachments):
            connection.execute(update(table).values(sha256=real))
    assert check_store(store.address).whole
    with store.writing() as connection:
        changed = schema.scores.c.case_position == 3
        connection.execute(update(schema.scores).where(changed).values(value=0.25))
    for result in copy_runs(store, other, find_copied(store, [])):
        assert result.outcome == "copied"
    here, there = check_store(store.address), check_store(other.address)
    assert [table.damaged for table in there.tables if table.table == "scores"] != [0]
    assert sorted(there.damaged) == sorted(here.damaged) and not any(table.unproven for table in there.tables)
    assert all(f"run {filled.id}, case 3" in named for named in there.damaged)
