"""The store: durable, readable by others while it is written, and free of secrets."""

import asyncio
import sqlite3
import time

import pytest
from sqlalchemy import event

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError, StoreError
from fairtrial.store import Saver, Store
from fairtrial.store.todo import next_step
from fairtrial.workflows.resume import arescore, aresume
from tests.conftest import numbered
from tests.plans import add_plan

SECRETS = {"TEAM_TOKEN": "tok-team-98765", "CITY": "Reykjavik", "OPENAI_API_KEY": "sk-test-key-0001"}


@pytest.mark.slow
async def test_values_of_variables_are_nowhere(write_suite, model_server, monkeypatch, tmp_path, store):
    """Not in the store, not in any export, not in errors — and the run can still be resumed and rescored."""
    from fairtrial.reports.export import export

    state = await model_server(answer="You said: {prompt} with tok-team-98765")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    path = write_suite(
        targets=["lab:m"],
        providers={
            "lab": {
                "base_url": f"{state.address}/v1",
                "api_key": "${OPENAI_API_KEY}",
                "headers": {"X-Team": "${TEAM_TOKEN}"},
            }
        },
        system="The team's token is ${TEAM_TOKEN}.",
        scorer="boolean",
        cases=[
            {"id": "city", "input": "Is ${CITY} far from ${NOWHERE:-home}?", "expected": "${CITY}"},
            {"id": "code", "input": "What does $${x} mean?", "expected": "$${x}"},
        ],
    )
    run = await pipeline.arun(pipeline.load(path), store=store)
    assert run.status == "completed" and all(t.score == 1.0 for t in run.trials())
    assert state.bodies[0]["messages"][0]["content"] == "The team's token is tok-team-98765."
    assert {b["messages"][1]["content"] for b in state.bodies} == {
        "Is Reykjavik far from home?",
        "What does ${x} mean?",
    }
    city, code = run.trials()
    assert city.input == "Is ${CITY} far from ${NOWHERE:-home}?" and code.input == "What does ${x} mean?"
    assert city.answer == "You said: Is ${CITY} far from home? with ${TEAM_TOKEN}"

    rescored = await arescore(run.id, scorer={"type": "boolean"}, store=store)
    assert all(t.score == 1.0 for t in rescored.trials())
    for name in ("a.json", "a.jsonl", "a.csv", "a.md", "a.junit.xml"):
        export(run, tmp_path / name)
    everything = b"".join(p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and p.name != "suite.yaml")
    for value in SECRETS.values():
        assert value.encode() not in everything, value

    monkeypatch.delenv("TEAM_TOKEN")
    monkeypatch.delenv("CITY")
    store.set_run(run.id, status="interrupted")
    with pytest.raises(FairtrialError, match="needs CITY, TEAM_TOKEN"):
        await aresume(run.id, store=store)


@pytest.mark.slow
async def test_a_reader_sees_a_run_while_it_goes_on(write_suite, store, model_server):
    state = await model_server()
    state.hold(after=50)
    suite = pipeline.load(write_suite(targets=["openai:m"], cases=numbered(100), concurrency=5))
    work = asyncio.create_task(pipeline.arun(suite, store=store))
    seen = []
    while not work.done():
        await asyncio.sleep(0.02)
        other = Store(store.address, create=False)
        if other.runs():
            run = Run.find("latest", other)
            seen.append((run.status, len(list(run.trials()))))
            if seen[-1][1]:
                state.release()
        other.close()
    await work
    assert any(status == "running" and 0 < count < 100 for status, count in seen), seen


def test_a_killed_run_is_shown_as_interrupted(store):
    add_plan(
        store,
        {
            "id": "p",
            "suite_name": "s",
            "suite_text": "",
            "suite_sha256": "",
            "dataset_sha256": "",
            "folder": "",
            "arms": b"[]",
        },
        [],
        None,
    )
    store.add_run({"id": "r1", "plan_id": "p", "series_id": None, "settings": b"{}", "context": b"{}"})
    assert store.find_run("r1").status == "interrupted"
    with store.lease("r1"):
        assert store.find_run("r1").status == "running"


async def test_run_names(run_suite, store):
    one, two = await run_suite(), await run_suite()
    assert one.id < two.id
    assert store.find_run("latest").id == two.id
    assert store.find_run(one.id).id == one.id
    assert store.find_run(one.id[:-1]).id == one.id
    with pytest.raises(FairtrialError, match="matches 2 runs"):
        store.find_run(one.id[:3])
    with pytest.raises(FairtrialError, match="there is no run"):
        store.find_run("zzz")


def test_a_store_from_the_future_is_refused(tmp_path):
    path = tmp_path / "new.db"
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("update meta set value = '99'")
    with pytest.raises(StoreError, match="newer fairtrial"):
        Store(str(path))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("junk.db", "is not a fairtrial store"),
        ("none.db", "there is no store"),
        ("mysql://x:secret@y/z", "`mysql` is not supported: use sqlite"),
        ("nonsense://", "`nonsense` is not supported: use sqlite"),
    ],
)
def test_stores_that_cannot_be_opened(tmp_path, url, words):
    (tmp_path / "junk.db").write_bytes(b"this is no database, it is a text file" * 50)
    with pytest.raises(StoreError, match=words):
        Store(url, create=False)


@pytest.mark.slow
async def test_a_full_disk_stops_the_run_and_loses_nothing(write_suite, store, model_server):
    """SQLite itself says that the disk is full; what was stored stays, and the run goes on when there is room."""
    state = await model_server(answer="x" * 2000)
    suite = pipeline.load(write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(300, "x"), concurrency=2))

    def little_room(connection, _):  # for the plan and some 85 trials: far more than are written at once
        connection.execute("PRAGMA max_page_count=160")

    event.listen(store.engine, "connect", little_room)
    store.engine.dispose()
    with pytest.raises(StoreError, match="is full: free some space"):
        await pipeline.arun(suite, store=store)
    event.remove(store.engine, "connect", little_room)
    store.engine.dispose()

    stored = len(list(Run.find("latest", store).trials()))
    assert 0 < stored < 300
    before = state.calls.copy()
    run = await aresume("latest", store=store)
    assert run.status == "completed"
    assert state.calls.total() - before.total() == 300 - stored


async def test_the_saver_commits_in_groups_and_tells_everybody():
    batches = []

    def write(batch):
        time.sleep(0.005)
        batches.append(sum(map(len, batch.values())))

    async with Saver(write) as saver:
        await asyncio.gather(*(saver.save("trials", {"n": n}) for n in range(200)))
        assert sum(batches) == 200 and len(batches) <= 3


async def test_a_saver_with_nothing_to_save_rests(monkeypatch):
    monkeypatch.setattr("fairtrial.store.saver._GATHER_SECONDS", 0)
    flushed = []

    class Counted(Saver):
        async def flush(self):
            flushed.append(1)
            await super().flush()

    async with Counted(lambda batch: None) as saver:
        await saver.save("t", {})
        so_far = len(flushed)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(flushed) <= so_far + 1


async def test_a_row_given_to_the_saver_is_kept_even_if_nobody_waits():
    kept = []
    async with Saver(lambda batch: kept.extend(batch["t"])) as saver:
        saver.save("t", {"n": 1}).cancel()
    assert kept == [{"n": 1}]


async def test_a_saver_that_cannot_write_says_so_to_everybody():
    def write(batch):
        raise StoreError("no room")

    with pytest.raises(StoreError, match="no room"):
        async with Saver(write) as saver:
            results = await asyncio.gather(*(saver.save("t", {}) for _ in range(3)), return_exceptions=True)
            assert all(isinstance(result, StoreError) for result in results)
            with pytest.raises(StoreError):
                await saver.save("t", {})


def row(failure=None, value=None, unscored=None, retryable=False):
    return {
        "failure_kind": failure,
        "score_value": value,
        "score_unscored_kind": unscored,
        "score_retryable": retryable,
    }


@pytest.mark.parametrize(
    ("stored", "resume", "retry", "rescore"),
    [
        (None, "ask", "nothing", "nothing"),
        (row(failure="server"), "nothing", "ask", "nothing"),
        (row(), "score", "score", "score"),
        (row(value=0.0), "nothing", "nothing", "nothing"),
        (row(unscored="timeout"), "nothing", "score", "score"),
        (row(unscored="judge", retryable=True), "score", "score", "score"),
    ],
)
def test_what_is_left_to_do(stored, resume, retry, rescore):
    assert [next_step(stored, mode) for mode in ("resume", "retry", "rescore")] == [resume, retry, rescore]
