"""What befalls a run and its store: judges that fail, rows that nobody can hold, locks, damage, too few open files."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.core.answer import Usage
from fairtrial.core.errors import BadRowError, FairtrialError, StoreAwayError, StoreError, TargetUnusableError
from fairtrial.engine.limits import calls_allowed
from fairtrial.store import Saver, Store, schema, sqlite
from fairtrial.store.checking import check_file
from fairtrial.store.waiting import Waiting
from fairtrial.workflows.resume import arescore, aresume
from tests import forks
from tests.conftest import numbered
from tests.plans import add_plan

GOOD = {"id": "good", "target": "mock:x", "options": {"answer": "right and proper"}}
VERDICT = '{"reasoning": "ok", "score": 7}'
QUICK = {"attempts": 2, "wait": 0.0, "max_wait": 0.0}


# -- judges ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "words"),
    [({"key": "sk-other"}, "Incorrect API key"), ({"models": ("other",)}, "does not exist")],
)
async def test_a_judge_that_cannot_be_asked_stops_the_run_before_anything_is_bought(
    run_suite, model_server, store, behaviour, words
):
    state = await model_server(answer=VERDICT, **behaviour)
    with pytest.raises(TargetUnusableError, match=words):
        await run_suite(targets=[GOOD], scorer="llm_judge", judge="openai:judge", cases=numbered(30))
    assert not list(Run.find("latest", store).trials()) and state.calls.total() == 0


async def test_a_judge_is_tried_only_where_one_is_needed(run_suite, model_server):
    state = await model_server(answer=VERDICT)
    await run_suite(targets=[GOOD], scorer="boolean", judge="openai:judge", cases=numbered(2))
    assert state.calls.total() == 0


@pytest.mark.slow
async def test_a_judge_that_was_heard_in_a_run_is_not_tried_again(run_suite, model_server, store):
    state = await model_server(answer=VERDICT)
    state.fault = lambda prompt: "500" if "Question 1?" in prompt else None
    run = await run_suite(targets=[GOOD], scorer="llm_judge", judge="openai:j", cases=numbered(2), retry=QUICK)
    assert (run.status, state.calls.total()) == ("incomplete", 1 + 1 + 2)
    del state.fault
    run = await aresume(run.id, store=store)
    assert (run.status, state.calls.total()) == ("completed", 5)


@pytest.mark.slow
async def test_a_judge_that_fails_again_and_again_is_given_up_and_answers_stay(run_suite, model_server, store):
    state = await model_server(answer="I would rather not say.")
    keys = {"scorer": "llm_judge", "judge": "openai:judge", "cases": numbered(120), "concurrency": 2}
    run = await run_suite(targets=[GOOD], **keys)
    answers = {trial.trial_id for trial in run.trials()}
    assert run.status == "incomplete" and "the judge openai:judge: the last 2" in run.record.reason
    assert 20 <= len(answers) < 60  # not all 120 were bought for a judge that cannot judge
    state.behaviour.answer = VERDICT
    run = await aresume(run.id, store=store, mode="retry")
    run = await aresume(run.id, store=store)
    assert run.status == "completed" and answers <= {trial.trial_id for trial in run.trials()}


# -- rescoring -------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_rescoring_back_and_forth_buys_no_verdict_twice(run_suite, model_server, store):
    state = await model_server(answer=VERDICT)
    prices = {"openai:judge": {"input": 100.0, "output": 100.0}}
    run = await run_suite(targets=[GOOD], scorer="llm_judge", judge="openai:judge", cases=numbered(5), prices=prices)
    first = [trial.score for trial in run.trials()]
    bought, spent = state.calls.total(), run.summary().spent
    await arescore(run.id, scorer={"type": "boolean"}, store=store)
    run = await arescore(run.id, scorer={"type": "llm_judge"}, store=store)
    run = await arescore(run.id, store=store)
    assert state.calls.total() == bought and [trial.score for trial in run.trials()] == first
    summary = run.summary()
    assert (summary.arms[0].judge_verdicts, summary.arms[0].judge_calls) == (5, 0)
    assert summary.spent == spent and summary.spent.known > 0  # what was spent is what is shown
    (verdict,) = run.judgements(next(run.trials()).trial_id)
    assert verdict["reasoning"] and verdict["reply"] and verdict["model"] == "mock"  # and can still be contested
    other = await arescore(run.id, judge="openai:other", store=store)
    assert state.calls.total() == bought + 5 and other.summary().spent.unknown == 5  # another judge is another verdict


@pytest.mark.slow
async def test_one_can_go_back_to_an_earlier_scoring(run_suite, store, capsys):
    run = await run_suite(targets=[GOOD], scorer="exact", cases=numbered(3, "right and proper"))
    await arescore(run.id, scorer={"type": "regex"}, store=store)
    assert Run.find(run.id, store).record.scoring == 1
    assert _run(["rescore", run.id, "--scoring", "0", "--store", store.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["mean"] == 100
    assert Run.find(run.id, store).record.scoring == 0
    assert _run(["rescore", run.id, "--scoring", "7", "--store", store.address]) == 1
    assert "no finished scoring 7; finished scorings: 0, 1" in capsys.readouterr().err
    assert _run(["show", run.id, "--context", "--store", store.address]) == 0
    shown = capsys.readouterr().out
    assert "0  as the suite says  (current)" in shown and "1  regex  (kept)" in shown


@pytest.mark.slow
async def test_a_rescoring_that_failed_succeeds_once_its_judge_is_repaired(run_suite, model_server, store):
    state = await model_server(answer="no verdict")
    run = await run_suite(targets=[GOOD], cases=numbered(3))
    for _ in range(2):
        with pytest.raises(FairtrialError, match="no answer could be scored"):
            await arescore(run.id, scorer={"type": "llm_judge"}, judge="openai:judge", store=store)
    state.behaviour.answer = VERDICT
    run = await arescore(run.id, scorer={"type": "llm_judge"}, judge="openai:judge", store=store)
    assert run.arms[0].aggregate.mean == pytest.approx(0.7)


# -- series and names ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_series_that_was_cut_short_is_completed_by_resume(write_suite, store, capsys):
    path = write_suite(scorer="boolean", cases=numbered(4))
    first = asyncio.run(pipeline.arun(pipeline.load(path), store=store, series=pipeline.SeriesPlan("0-series", 3)))
    before = [trial.started_at for trial in first.trials()]
    _run(["resume", "latest", "--store", store.address, "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["series_id"] == "0-series" and len(shown["series"]["run_ids"]) == 3
    assert [trial.started_at for trial in first.trials()] == before  # and nothing was asked twice
    assert {run.status for run in store.runs()} == {"completed"} and len({run.plan_id for run in store.runs()}) == 1
    _run(["resume", "0-series", "--store", store.address, "--quiet"])
    assert len(store.runs()) == 3


@pytest.mark.slow
async def test_the_latest_run_is_the_one_begun_last_whatever_the_clock_said(run_suite, store, monkeypatch):
    from fairtrial.core import ids

    real = time.time_ns
    monkeypatch.setattr(ids.time, "time_ns", lambda: real() + 10**18)  # somebody's clock was thirty years ahead
    ahead = await run_suite()
    monkeypatch.setattr(ids.time, "time_ns", real)
    run = await run_suite()
    assert ahead.id > run.id and store.find_run("latest").id == run.id
    assert [found.id for found in store.runs()] == [run.id, ahead.id]


# -- rows and the store ----------------------------------------------------------------------------


async def test_a_row_that_cannot_be_stored_takes_no_neighbour_along(store):
    ends = []

    async with Saver(store.write) as saver:
        good = {"sha256": "a", "media": "x", "body": b"1"}
        rows = [good, {**good, "sha256": 2**70}, {**good, "sha256": "c"}]
        saved = [saver.save("files", row, lambda n=n: ends.append(n)) for n, row in enumerate(rows)]
        results = await asyncio.gather(*saved, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), BadRowError, type(None)] and ends == [0, 2]
    with closing(sqlite3.connect(store.address)) as connection:
        assert {row[0] for row in connection.execute("select sha256 from files")} == {"a", "c"}


@pytest.mark.slow
async def test_impossible_numbers_end_no_run(run_suite, tmp_path):
    (tmp_path / "agent.py").write_text(
        "from fairtrial.core.answer import Answer, Usage\n"
        "def count(prompt, system, servers):\n"
        "    return Answer(text='42', usage=Usage(prompt=2**63, completion=-1))\n"
        "def wait(prompt, system, servers):\n"
        "    return Answer(text='42', latency_ms=10**400)\n"
    )
    targets = ["python:agent.py:count", "python:agent.py:wait", "mock:echo"]
    run = await run_suite(targets=targets, scorer="boolean", cases=numbered(20))
    counted, waited, echoed = run.summary().arms
    assert counted.scored == echoed.scored == 20 and counted.prompt_tokens == 0
    assert waited.failed == 20 and "cannot be stored" in run.summary().failures[0][1]


@pytest.mark.slow
async def test_a_full_disk_with_judges_is_one_sentence(write_suite, store, capfd):
    from tests.judging.test_judges import judge

    wordy = {"id": "wordy", "target": "mock:x", "options": {"answer": "words " * 500}}
    suite = pipeline.load(write_suite(targets=[wordy], scorer="llm_judge", judge=judge(), cases=numbered(300)))

    def little_room(connection, _):
        connection.execute("PRAGMA max_page_count=120")

    event.listen(store.engine, "connect", little_room)
    store.engine.dispose()
    with pytest.raises(StoreError, match="is full: free some space"):
        await pipeline.arun(suite, store=store)
    event.remove(store.engine, "connect", little_room)
    store.engine.dispose()
    import gc

    gc.collect()
    assert "never retrieved" not in capfd.readouterr().err
    assert (await aresume("latest", store=store)).status == "completed"


async def test_a_locked_store_is_waited_for(run_suite, store, monkeypatch):
    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    store.engine.dispose()  # connections made from now on have no patience of their own

    with closing(sqlite3.connect(store.address, isolation_level=None, check_same_thread=False)) as other:
        waiting = Waiting()
        other.execute("BEGIN IMMEDIATE")
        async with Saver(store.write, waiting) as saver:
            saved = saver.save("files", {"sha256": "a", "media": "x", "body": b"1"})
            while waiting.why() != "another program has locked the store":
                await asyncio.sleep(0.005)
            assert not saved.done()
            other.execute("ROLLBACK")
            await asyncio.wait_for(saved, 240)
        assert waiting.why() == "" and waiting.free_since


@pytest.mark.slow
def test_after_a_clean_exit_everything_is_in_one_file(write_suite, tmp_path):
    path = write_suite(cases=numbered(5))
    assert forks.run("run", path, "--quiet").returncode == 0
    folder = tmp_path / ".fairtrial"
    assert {file.name for file in folder.iterdir() if file.is_file()} == {"fairtrial.db"}
    (tmp_path / "copy.db").write_bytes((folder / "fairtrial.db").read_bytes())
    assert len(list(Run.find("latest", Store(str(tmp_path / "copy.db"))).trials())) == 5


@pytest.fixture
async def damaged(run_suite, store, tmp_path):
    """A store with a page of answers overwritten."""
    answers = {"id": "long", "target": "mock:x", "options": {"answer": "sentinel " * 300}}
    await run_suite(targets=[answers], cases=numbered(60))
    store.close()
    path = tmp_path / "test.db"
    content = bytearray(path.read_bytes())
    place = content.rfind(b"sentinel")
    page = place // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    return path


@pytest.mark.slow
async def test_a_damaged_store_is_called_damaged_and_what_is_whole_is_saved(damaged, tmp_path, capsys):
    assert _run(["export", "latest", "-o", "out.csv", "--store", str(damaged)]) == 1
    assert "is damaged: `fairtrial store check" in capsys.readouterr().err
    assert _run(["store", "check", "--store", str(damaged)]) == 1
    assert "is damaged" in capsys.readouterr().out
    saved = tmp_path / "saved.db"
    assert _run(["store", "check", "--store", str(damaged), "--save", str(saved)]) == 0
    assert f"saved: {saved}" in capsys.readouterr().out
    assert check_file(saved).whole
    kept = list(Run.find("latest", Store(str(saved))).trials())
    assert 40 <= len(kept) < 60 and all(trial.answer.startswith("sentinel") for trial in kept)
    run = await aresume("latest", store=Store(str(saved)))
    assert run.status == "completed" and len(list(run.trials())) == 60


async def test_a_whole_store_is_called_whole(run_suite, store, capsys):
    await run_suite()
    assert _run(["store", "check", "--store", store.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"] is True
    assert _run(["store", "check", "--store", "nowhere.db"]) == 1
    assert _run(["store", "check", "--store", store.address, "--save", store.address]) == 1
    assert "already exists" in capsys.readouterr().err


def test_reasons_of_the_database_are_the_right_ones():
    said = {
        "database or disk is full": "is full: free some space",
        "disk I/O error": "cannot be read or written",
        "database disk image is malformed": "is damaged",
        "Could not decode to UTF-8 column 'answer' with text 'two\nlines'": "is damaged",
        "file is not a database": "is not a fairtrial store",
        "database is locked": "is locked by another program",
    }
    for reason, words in said.items():
        error = OperationalError("", {}, sqlite3.OperationalError(reason))
        assert words in str(sqlite.Sqlite(Path("x.db")).explain(error))


@pytest.mark.slow
def test_a_plan_that_was_not_written_to_its_end_is_written_anew(write_suite, store):
    suite = pipeline.load(write_suite(cases=numbered(2500)))
    cases = list(suite.cases())

    def broken():
        yield from cases[:1500]
        raise RuntimeError("killed")

    plan = {
        "id": suite.plan_id,
        "suite_name": "x",
        "suite_text": "",
        "suite_sha256": "",
        "dataset_sha256": "",
        "folder": "",
        "arms": b'[{"target": {"id": "mock:echo"}}]',
    }
    with pytest.raises(RuntimeError):
        add_plan(store, plan, broken(), suite.variables)
    add_plan(store, plan, iter(cases), suite.variables)
    assert store.plan(suite.plan_id).case_count == 2500
    assert [case.id for case in store.cases(suite.plan_id, 2400, 200)] == [f"q{n}" for n in range(2400, 2500)]


# -- open files ------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_few_open_files_slow_a_run_down_instead_of_ending_it(write_suite, tmp_path, model_server):
    await model_server(latency=0.05, answer="42")
    path = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(150), concurrency=150)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
    done = await asyncio.to_thread(forks.run, "run", path, "--quiet", "--json", program=limit + forks.PROGRAM)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arms"][0]["scored"] == 150


def test_calls_at_once_are_those_that_files_allow(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    assert calls_allowed(5) == 5 and calls_allowed(500) == 60
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))
    assert calls_allowed(5) == 1


def test_a_usage_that_nobody_can_count_is_none():
    from fairtrial.store.rows import _usage_columns

    assert _usage_columns(Usage(prompt=2**63)).get("prompt_tokens") is None
    assert _usage_columns(Usage(prompt=-1)).get("prompt_tokens") is None
    assert _usage_columns(Usage(prompt=7, completion=3))["completion_tokens"] == 3


def test_a_new_store_waits_for_another_program_that_opens_it(tmp_path, monkeypatch):
    """SQLite itself does not wait while a file gets its log."""
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(sqlite.time, "sleep", lambda _: other.execute("ROLLBACK"))
        Store(str(path)).close()
    monkeypatch.undo()
    assert Store(str(path)).runs() == []


def test_a_plan_whose_last_cases_are_gone_gets_no_gap(write_suite, store, monkeypatch):
    """As when a copy of the database that lacks them takes its place."""
    monkeypatch.setattr("fairtrial.store.plans._BATCH", 2)
    suite = pipeline.load(write_suite(cases=numbered(7)))
    for count in (4, 7):  # cases that are stored when some of them are lost
        writing = pipeline._write_plan(suite, store, Waiting())
        while next(writing).cases < count:
            pass
        with store.writing() as connection:
            connection.execute(schema.cases.delete().where(schema.cases.c.position >= count - 1))
        with pytest.raises(StoreAwayError, match="lacks cases which had just been stored: run the suite again"):
            next(writing)
    assert list(pipeline._write_plan(suite, store, Waiting()))[-1].cases == 7
    assert not store.plan(suite.plan_id).unfinished
