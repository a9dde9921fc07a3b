"""What a run does when its workers are lost or say nothing, and when none can be started: it waits within limits, then
says so in one sentence, and `resume` goes on."""

import asyncio
import signal
import socket
import time

import pytest
from sqlalchemy import select

from fairtrial import pipeline
from fairtrial.core.errors import WorkersGoneError
from fairtrial.engine.cluster import crew
from fairtrial.engine.cluster.link import BackendAwayError, WorkerLostError
from fairtrial.store import schema
from fairtrial.workflows.resume import aresume
from tests import forks
from tests.conftest import numbered
from tests.engine.test_cluster import answers, workers  # noqa: F401
from tests.engine.test_session import interrupted_after
from tests.lazily import Library
from tests.workers import LinkHere

psutil, ray = Library("psutil"), Library("ray")
any_answer = select(schema.trials.c.answer).limit(1)
SLOW = {"target": "mock:echo", "options": {"latency_ms": 5}}
PARIS = {"targets": [SLOW], "cases": numbered(30, "Question"), "concurrency": 4}


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """What is waited for minutes is waited for tenths of a second."""
    for name, seconds in {"_LOOK_EVERY": 0.02, "_AWAY": 0.3, "_NO_MACHINE": 0.3, "_LONGEST_PAUSE": 0.02}.items():
        monkeypatch.setattr(crew, name, seconds)


async def gone(run_suite, store, **keys):
    """Run until nothing can be done, and return what is said then and the run's record."""
    with pytest.raises(WorkersGoneError) as error:
        await run_suite(**{**PARIS, **keys})
    assert error.value.exit_code == 2
    (record,) = store.runs()
    assert record.status == "incomplete" and record.reason and record.reason in str(error.value)
    assert f"`fairtrial resume {record.id}`" in str(error.value)
    return str(error.value), record


async def completed(record, store, monkeypatch):
    monkeypatch.setattr("fairtrial.engine.session.backend_of", lambda where: None)
    run = await aresume(record.id, store=store)
    assert run.status == "completed" and len(answers(run)) == 30
    assert {trial.attempts for trial in run.trials()} == {1}


async def test_a_cluster_that_goes_away_is_waited_for_then_named(run_suite, workers, store, monkeypatch):  # noqa: F811
    backend = workers(most=2)

    async def vacancies(share):
        if len(backend.links) < 2:
            return 1
        raise BackendAwayError("the cluster at X does not answer")

    monkeypatch.setattr(backend, "vacancies", vacancies)

    async def lose():
        while not store.runs() or not store.fetch_dicts(any_answer):
            await asyncio.sleep(0.005)
        for link in backend.links:
            link.kill()

    losing = asyncio.create_task(lose())
    said, record = await gone(run_suite, store)
    await losing
    assert "the cluster at X does not answer" in said and "asked again" in said
    await completed(record, store, monkeypatch)


async def test_a_cluster_without_a_machine_is_waited_for_then_named(run_suite, workers, store, monkeypatch):  # noqa: F811
    backend = workers(most=2)
    never = asyncio.Event()

    async def vacancies(share):
        return None

    async def open(self, briefing):
        await never.wait()

    monkeypatch.setattr(backend, "vacancies", vacancies)
    monkeypatch.setattr(LinkHere, "open", open)
    said, record = await gone(run_suite, store)
    assert "no machine of the cluster" in said and "cpu 1" in said and "no trial was under way" in said
    await completed(record, store, monkeypatch)


async def test_workers_that_end_before_they_start_have_an_end(run_suite, workers, store, monkeypatch):  # noqa: F811
    backend = workers(most=2)

    async def open(self, briefing):
        raise WorkerLostError("its process ended")

    monkeypatch.setattr(LinkHere, "open", open)
    said, record = await gone(run_suite, store)
    assert "every worker ends before it has started" in said and len(backend.links) < 100
    await completed(record, store, monkeypatch)


async def test_workers_that_say_nothing_are_replaced(run_suite, workers, monkeypatch):  # noqa: F811
    monkeypatch.setattr(crew, "_SILENCE", 0.2)
    monkeypatch.setattr("fairtrial.engine.cluster.executor.MODEL_TIMEOUT", 0.2)
    workers(most=2)
    collect, frozen = LinkHere.collect, []

    async def freezing(self, linger):
        report = await collect(self, linger)
        if len(frozen) < 2 and self.worker._trials:
            frozen.append(self)
            await asyncio.Event().wait()
        return report

    monkeypatch.setattr(LinkHere, "collect", freezing)
    run = await run_suite(**PARIS)
    assert run.status == "completed" and len(answers(run)) == 30
    assert len(frozen) == 2 and not any(link.alive for link in frozen)


async def test_an_interruption_does_not_wait_for_workers(write_suite, workers, store, monkeypatch):  # noqa: F811
    """Neither for those that have not started nor for those that say nothing."""
    monkeypatch.setattr(crew, "_SILENCE_AT_THE_END", 0.1)
    workers(most=2)

    async def never(self, *_):
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(LinkHere, "open", never)
        suite = pipeline.load(write_suite(**PARIS))
        run = await asyncio.wait_for(pipeline.arun(suite, store=store, watch=interrupted_after(0)), 60)
    assert run.status == "interrupted" and not answers(run)
    collect, count = LinkHere.collect, 0

    async def freezing(self, linger):
        nonlocal count
        count += 1
        return await (never(self) if count > 60 else collect(self, linger))

    monkeypatch.setattr(LinkHere, "collect", freezing)
    monkeypatch.setattr(LinkHere, "close", never)
    suite = pipeline.load(write_suite(**PARIS))
    run = await asyncio.wait_for(pipeline.arun(suite, store=store, watch=interrupted_after(5)), 60)
    assert run.status == "interrupted" and len(answers(run)) >= 5


@pytest.mark.slow
def test_something_that_listens_and_says_nothing_is_named_in_time(write_suite, tmp_path):
    """A cluster behind a network that swallows everything; Ctrl-C does not wait for it either."""
    assert ray.init
    write_suite()
    limits = "from fairtrial.tracks.ray import workers\nworkers._CONNECTING = 3.0\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"ray:127.0.0.1:{listening.getsockname()[1]}"
        done = forks.run("run", "suite.yaml", "--engine", address, "--quiet", program=limits + forks.PROGRAM)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "no Ray cluster answers" in done.stderr and "`fairtrial resume" in done.stderr
        started = forks.start("run", "suite.yaml", "--engine", address, "--quiet", folder=tmp_path)
        process = psutil.Process(started.pid)
        while not process.children():
            time.sleep(0.02)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate()
        assert started.returncode == 130 and b"Traceback" not in said, said


def test_an_address_without_a_cluster_is_named_at_once(write_suite):
    assert ray.init
    write_suite()
    done = forks.run("run", "suite.yaml", "--engine", "ray:127.0.0.1:9", "--quiet")
    assert done.returncode == 2 and done.stdout == ""
    assert "no Ray cluster answers at 127.0.0.1:9 (Connection refused)" in done.stderr
    assert done.stderr.count("\n") == 1 and "`fairtrial resume" in done.stderr
    assert forks.run("resume", "latest", "--quiet").returncode == 0
    odd = forks.run("run", "suite.yaml", "--engine", "ray:head")
    assert odd.returncode == 1 and "use ray:HOST:PORT" in odd.stderr
