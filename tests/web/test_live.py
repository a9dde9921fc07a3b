"""Live: answers heard while they are given, and runs of other processes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial import pipeline
from fairtrial.core.trial import Trial
from fairtrial.engine.watching import Session
from fairtrial.store import Store
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from fairtrial.web.tasks import LiveAnswer, Task
from fairtrial.workflows.series import arun_series

from .conftest import TOKEN


class Notes:
    """Listens to every answer, by case."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}
        self.ended: list[str] = []

    def __call__(self, trial: Trial) -> Any:
        notes, name = self, trial.case.id

        class One:
            def begin(self) -> None:
                notes.said[name] = []

            def piece(self, text: str) -> None:
                notes.said[name].append(text)

            def end(self) -> None:
                notes.ended.append(name)

        return One()

    @asynccontextmanager
    async def watch(self, session: Session) -> AsyncIterator[None]:
        session.listen = self
        yield


@pytest.mark.parametrize("target", ["openai:gpt-test", "anthropic:claude-test"])
async def test_an_answer_is_heard_piece_by_piece(
    target: str, model_server: Any, write_suite: Any, store: Store
) -> None:
    await model_server(answer="one two three four five")
    notes = Notes()
    suite = pipeline.load(write_suite(targets=[target], cases=[{"id": "a", "input": "Count", "expected": "one"}]))
    run = await pipeline.arun(suite, store=store, watch=notes.watch)
    trial = next(run.trials())
    assert "".join(notes.said["a"]) == trial.answer and len(notes.said["a"]) > 1
    assert notes.ended == ["a"]


async def test_what_was_heard_of_a_failed_attempt_does_not_count(write_suite: Any, store: Store) -> None:
    notes = Notes()
    target = {"target": "mock:x", "options": {"answer": "right", "faults": {"500": 0.5}, "seed": 3}}
    cases = [{"id": f"c{n}", "input": str(n), "expected": "right"} for n in range(8)]
    suite = pipeline.load(write_suite(targets=[target], cases=cases, retry={"wait": 0.01}))
    run = await pipeline.arun(suite, store=store, watch=notes.watch)
    assert any(trial.attempts > 1 for trial in run.trials())
    assert {"".join(said) for said in notes.said.values()} == {"right"}


async def test_a_judges_reply_is_not_for_those_who_listen(write_suite: Any, store: Store) -> None:
    notes = Notes()
    judge = {"target": "mock:j", "options": {"verdict": {"otherwise": 9}}}
    target = {"target": "mock:x", "options": {"answer": "an answer"}}
    suite = pipeline.load(write_suite(targets=[target], judge=judge, scorer="llm_judge"))
    await pipeline.arun(suite, store=store, watch=notes.watch)
    assert notes.said == {"one": ["an answer"]}


def test_what_is_heard_is_bounded() -> None:
    heard = LiveAnswer((0, 0, 0), lambda place: None)
    heard.begin()
    for _ in range(1000):
        heard.piece("x" * 1000)
    assert heard.length == 1_000_000 and len(heard.text) <= 401_000


@pytest.mark.slow
async def test_a_run_of_another_process_is_seen_live(
    site: str, write_suite: Any, store: Store, model_server: Any
) -> None:
    import aiohttp

    state = await model_server(answer="one")
    state.hold(after=10)
    cases = [{"id": f"c{n}", "input": str(n), "expected": "one"} for n in range(30)]
    path = write_suite(targets=["openai:m"], cases=cases, concurrency=2)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fairtrial", "run", str(path), "-q", "--store", store.address
    )
    while not store.runs() or store.runs()[0].status != "running":
        await asyncio.sleep(0.05)
    run = store.runs()[0].id
    states = []
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {TOKEN}"}) as session,
        session.get(f"{site}/runs/{run}/events?case=0&case=1") as reply,
    ):
        async for line in reply.content:
            if line.startswith(b"data: "):
                states.append(json.loads(line[6:]))
                if states[-1]["done"]:
                    state.release()
    assert await process.wait() == 0
    assert states[0]["status"] == "running" and states[-1]["status"] == "completed"
    assert states[-1]["done"] == 30 and {key for state in states for key in state["cells"]} == {"0.0", "1.0"}


def test_a_task_leads_to_the_view_that_was_asked_for_however_long_it_takes_to_begin() -> None:
    task = Task("run", "arena")
    task.view = "/pages"
    assert task.address == f"/tasks/{task.id}"
    task.run_ids.append("r1")
    assert task.address == "/runs/r1/pages"


def test_a_series_is_watched_as_a_whole() -> None:
    task = Task("run", "capitals")
    task.run_ids.append("r1")
    task.series_id = "s1"
    assert task.address == "/series/s1"


async def test_a_series_that_is_stopped_between_two_runs_begins_no_other(write_suite: Any, store: Store) -> None:
    task = Task("run", "test")
    suite = pipeline.load(write_suite())

    def stop_after(part: Any, run: Any) -> None:
        task.stopping = True  # the click came when the first run was as good as over

    with pytest.raises(asyncio.CancelledError):
        await arun_series(suite, 3, store=store, watch=task.watch_part, after=stop_after)
    assert [record.status for record in store.runs()] == ["completed"]


def test_a_suite_that_cannot_be_a_series_is_refused_before_it_begins(
    write_suite: Any, store: Store, tmp_path: Any
) -> None:
    write_suite(name="s.yaml", cache=True)
    site = Site(store, tmp_path)
    form = {"file": "s.yaml", "target": "mock:echo", "condition": "default", "runs": "3"}
    reply = TestClient(make_app(site), headers={"origin": "http://testserver"}).post("/new/run", data=form)
    site.close()
    assert reply.status_code == 400 and "the runs of a series must be independent" in reply.text and not store.runs()
