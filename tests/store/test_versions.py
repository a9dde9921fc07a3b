"""Stores of earlier versions: opened, upgraded, read and worked on, with nothing lost.

`tests/data/stores/version-8.db.gz` was written by fairtrial 0.1.0: a run with two scorers and a judge, one that was scored
again, and one that was killed after a few answers.
"""

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial.cli.main import _run as command_line
from fairtrial.reports.export import export
from fairtrial.store import Store, browsing
from fairtrial.store.checking import check_file
from fairtrial.store.scorings import scorings_of

STORES = Path(__file__).parents[1] / "data" / "stores"


@pytest.fixture(params=sorted(path.name for path in STORES.iterdir()))
def old(request, tmp_path):
    """A copy of an old store."""
    path = tmp_path / "old.db"
    with gzip.open(STORES / request.param) as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


def _rows(path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"select count(*) from {table}").fetchone()[0]


@pytest.mark.slow
def test_it_is_read_as_it_was(old, tmp_path):
    before = {table: _rows(old, table) for table in ("trials", "scores", "judgements", "cases", "plans", "runs")}
    store = Store(str(old))
    killed, exact, first = store.runs()
    assert [run.status for run in (killed, exact, first)] == ["interrupted", "completed", "completed"]
    run = ft.open_run(first.id, store=str(old))
    means = {arm.arm: round(100 * arm.aggregate.mean, 1) for arm in run.arms}
    assert means["good"] == 85.8 and means["poor"] < 60
    assert len(list(run.trials())) == 16 and all(trial.status == "scored" for trial in run.trials())
    assert ft.open_run("killed", store=str(old)).id == killed.id
    assert [scoring.number for scoring in scorings_of(store, exact.id)] == [0, 1]
    assert ft.compare(run, "good", "poor").difference > 0
    for ending in (".json", ".jsonl", ".csv", ".md", ".html"):
        assert export(run, tmp_path / f"run{ending}").stat().st_size > 100
    assert {table: _rows(old, table) for table in before} == before


@pytest.mark.slow
async def test_it_is_worked_on(old):
    store = Store(str(old))
    answered = {trial.trial_id for trial in ft.open_run("killed", store=str(old)).trials()}
    asked = _rows(old, "trials")
    from fairtrial.workflows.resume import arescore, aresume

    run = await aresume("killed", store=store)
    assert run.status == "completed" and len(list(run.trials())) == 16
    assert answered < {trial.trial_id for trial in run.trials()}
    assert _rows(old, "trials") == asked + 16 - len(answered)
    assert (await arescore(run.id, scorer={"type": "exact"}, store=store)).record.scoring == 1


def test_runs_are_found_by_their_targets(old):
    store = Store(str(old))
    page, count = browsing.runs_page(store, browsing.RunQuery(target="good"), 0, 10)
    assert count == len(page) == 3
    assert browsing.runs_page(store, browsing.RunQuery(target="goo"), 0, 10)[1] == 0


def test_what_is_whole_in_it_can_be_saved(old, tmp_path):
    """A store of an earlier version that is damaged: what is copied out of it is upgraded too."""
    saved = tmp_path / "saved.db"
    check_file(old, saved)
    assert len(Store(str(saved)).runs()) == 3
    page, _ = browsing.runs_page(Store(str(saved)), browsing.RunQuery(target="poor"), 0, 10)
    assert len(page) == 3


def test_from_the_command_line(old, capsys):
    assert command_line(["show", "killed", "--store", str(old), "--json"]) == 0
    assert '"schema_version"' in capsys.readouterr().out
