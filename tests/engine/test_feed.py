"""A run of a large dataset reads, checks and stores all its cases before it asks any: their order is random."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions
from fairtrial.config import check_cases as check
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.engine.feed import CaseFeed
from fairtrial.store import Store, plans
from fairtrial.store.planned import Planned
from fairtrial.workflows.resume import aresume

ROWS = 60


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make 60 rows a large dataset."""
    monkeypatch.setattr(check, "FIRST_CASES", 10)
    monkeypatch.setattr(plans, "_BATCH", 20)
    monkeypatch.setattr("fairtrial.engine.session.SLICE", 5)
    monkeypatch.setattr("fairtrial.engine.reader.SLICE", 5)


@pytest.fixture
def large(write_suite, tmp_path):
    """Write a suite with a dataset, some of whose rows may be replaced."""

    def write(replaced: dict[int, str] | None = None, **keys):
        rows = [(replaced or {}).get(number, f"id{number},Say {number},{number}") for number in range(ROWS)]
        (tmp_path / "d.csv").write_text("\n".join(["id,input,expected", *rows]) + "\n")
        keys = {"targets": ["mock:echo"], "dataset": "d.csv", "concurrency": 2, "scorer": "contains"} | keys
        return write_suite(**keys)

    return write


async def test_all_cases_are_asked_in_the_end(large, store):
    suite = pipeline.load(large(), whole=False)
    assert suite.case_count == 10
    run = await pipeline.arun(suite, store=store)
    assert (run.status, run.plan.case_count, run.plan.unfinished, len(list(run.trials()))) == (
        "completed",
        60,
        False,
        60,
    )
    assert suite.case_count == 60
    again = await pipeline.arun(pipeline.load(large(), whole=False), store=store)  # the plan is stored already
    assert (again.status, again.plan.id) == ("completed", run.plan.id)


class Slow:
    """A dataset whose last rows cannot be read before it is told so, and a watcher that sees the run meanwhile."""

    def __init__(self, rows_of):
        self._original, self._go_on = rows_of, threading.Event()
        self.seen: list[tuple[int, bool, float | None, int]] = []
        self.interrupts = False

    def rows_of(self, *args):
        for number, row in enumerate(self._original(*args)):
            assert number < 45 or self._go_on.wait(240), "nobody saw the run while its rows were read"
            yield row

    @asynccontextmanager
    async def watch(self, engine):
        task = asyncio.create_task(self._look(engine))
        yield
        await task
        self.progress = engine.progress

    async def _look(self, engine):
        progress = engine.progress
        while progress.total < 40:
            await asyncio.sleep(0.01)
        self.seen.append((progress.total, progress.growing, progress.seconds_left, progress.done))
        if self.interrupts:
            engine.interrupt()
        asyncio.get_running_loop().call_later(0.1, self._go_on.set)


async def test_nothing_is_asked_before_the_last_row_is_read(large, store, monkeypatch):
    from fairtrial.config import dataset

    slow = Slow(dataset.rows_of)
    suite = pipeline.load(large(), whole=False)
    monkeypatch.setattr(dataset, "rows_of", slow.rows_of)
    run = await pipeline.arun(suite, store=store, watch=slow.watch)
    assert slow.seen == [(40, True, None, 0)]  # how long it takes cannot be told yet
    assert run.status == "completed" and len(list(run.trials())) == 60
    assert (slow.progress.total, slow.progress.growing) == (60, False)


@pytest.mark.parametrize(
    ("row", "problem"), [("id50", "fewer fields than columns"), ("id3,Say 3,3", "duplicate case id `id3`")]
)
async def test_a_bad_row_further_down_is_told_with_its_line_before_anything_is_asked(large, store, row, problem):
    suite = pipeline.load(large({50: row}), whole=False)
    with pytest.raises(FairtrialError) as told:
        await pipeline.arun(suite, store=store)
    assert f"d.csv:52: {problem}" in str(told.value) and "nothing was asked" in str(told.value)
    record = store.find_run("latest")
    assert (record.status, problem in (record.reason or "")) == ("incomplete", True)
    run = pipeline.Run(store, record)
    assert run.plan.unfinished and run.plan.case_count == 40
    assert list(run.trials()) == []
    with pytest.raises(ProblemsError, match=problem):
        pipeline.load(large({50: row}))  # as `validate` does


async def test_validate_and_dry_runs_check_every_row(large, capsys):
    path = str(large({50: "id50"}))
    for command in (["validate", path], ["run", path, "--dry-run"]):
        assert _run(command) == 1
        assert "d.csv:52" in capsys.readouterr().err


async def test_a_run_that_stopped_while_its_rows_were_read_continues(large, store, tmp_path, monkeypatch):
    from fairtrial.config import dataset

    slow = Slow(dataset.rows_of)
    slow.interrupts = True
    suite = pipeline.load(large(), whole=False)
    with monkeypatch.context() as patch:
        patch.setattr(dataset, "rows_of", slow.rows_of)
        run = await pipeline.arun(suite, store=store, watch=slow.watch)
    assert run.status == "interrupted" and run.plan.unfinished and run.plan.case_count in (40, 60)
    assert list(run.trials()) == []
    data = (tmp_path / "d.csv").read_text()
    (tmp_path / "d.csv").write_text(data + "id99,Say 99,99\n")
    with pytest.raises(FairtrialError, match="its dataset has changed since then"):
        await aresume(run.id, store=store)
    (tmp_path / "d.csv").write_text(data)
    run = await aresume(run.id, store=store)
    assert (run.status, run.plan.unfinished, len(list(run.trials()))) == ("completed", False, 60)
    assert {trial.attempts for trial in run.trials()} == {1}


async def test_a_run_of_some_cases_continues_with_the_same(large, store, monkeypatch):
    """Interrupted while its plan was written, it went on with all rows of the dataset."""
    suite = pipeline.load(large(), RunOptions(limit=50))
    chosen = [case.id for case in suite.cases()]
    written = suite.cases

    def cases():
        for number, case in enumerate(written()):
            if number == 45:
                raise OSError("the disk is gone")
            yield case

    monkeypatch.setattr(suite, "cases", cases)
    with pytest.raises(OSError, match="the disk is gone"):
        await pipeline.arun(suite, store=store)
    run = await aresume("latest", store=store)
    assert run.status == "completed" and [trial.case_id for trial in run.trials()] == chosen


@pytest.mark.parametrize(
    ("options", "dataset"),
    [
        (RunOptions(limit=30), "d.csv"),
        (RunOptions(first=30), "d.csv"),
        (RunOptions(cases=("id59",)), "d.csv"),
        (RunOptions(), {"path": "d.csv", "sample": 30}),
        (RunOptions(stop_when="decided"), "d.csv"),
    ],
)
async def test_what_depends_on_all_rows_reads_them_first(large, options, dataset):
    path = large(dataset=dataset, targets=["mock:echo", {"id": "other", "target": "mock:echo"}])
    assert pipeline.load(path, options, whole=False).check_later is None


@given(st.lists(st.integers(0, 60).map(str)), st.integers(1, 9))
def test_ids_are_known_again(names, most):
    seen = check._Seen()
    seen._MOST = most
    known: set[str] = set()
    for name in names:
        assert seen.seen(name) == (name in known)
        known.add(name)


async def test_everybody_hears_of_what_goes_wrong():
    def broken():
        yield Planned(3)
        raise FairtrialError("no more")

    async with CaseFeed(broken()) as feed:
        assert await feed.wait_for(2) == 3
        for waiting in (feed.wait_for(4), feed.wait_for(9)):
            with pytest.raises(FairtrialError, match="no more"):
                await waiting


def test_a_store_with_an_unfinished_plan_can_be_looked_at(large, tmp_path, capsys):
    place = str(tmp_path / "s.db")
    assert _run(["run", str(large({50: "id50"})), "--store", place, "-q"]) == 1
    assert "d.csv:52" in capsys.readouterr().err
    for command in (["list"], ["show", "latest"], ["show", "latest", "--trials"], ["report", "latest", "-o", "r.html"]):
        assert _run([*command, "--store", place]) == 0, command
    assert Store(place).find_run("latest").status == "incomplete"


async def test_a_thread_that_cannot_start_ends_the_wait(monkeypatch):
    """As where the system has no memory for one more."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    async with CaseFeed(plans_of_nothing()) as feed:
        await feed.wait_for(1)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    async with CaseFeed(plans_of_nothing()) as feed:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await asyncio.wait_for(feed.wait_for(1), 60)


def plans_of_nothing():
    yield Planned()
