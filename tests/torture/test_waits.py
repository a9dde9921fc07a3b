"""Ctrl-C wherever a command waits: it ends gracefully within seconds, and a second one ends it at once.

A command provably waits when the signal is sent: a server has its request, its line names what it waits for, or what it
would write to is locked. Nothing of what had arrived is lost, and what it says is for people.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairtrial import pipeline
from fairtrial.store import Store
from tests import forks
from tests.conftest import numbered
from tests.lazily import Library
from tests.torture.partition import Partition

psycopg = Library("psycopg")

SOON = 60.0  # seconds, on a machine with much else to do; on an idle one it takes two to seven
HANGS = 240.0  # seconds after which what should happen is taken for what never will
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BOTH = pytest.mark.parametrize("number", SIGNALS)
AT_ONCE = 2 * 4 + 16  # trials that are asked, stored and scored at the same time
STOPPING = "stopping, and storing what has arrived; Ctrl-C again ends at once"


class Started:
    """A command whose lines are read as it writes them."""

    def __init__(self, *arguments: Any, folder: Path, program: str | None = None, process: Any = None) -> None:
        self.process = process or forks.start(*arguments, folder=folder, program=program)
        self.said: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(pipe,), daemon=True)
            for pipe in (self.process.stdout, self.process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: Any) -> None:
        for line in pipe:
            self.said.append(line.decode().rstrip("\n"))

    @property
    def words(self) -> str:
        return "\n".join(self.said)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something holds; fail if it has ended by then."""
        deadline = time.monotonic() + HANGS
        while not condition():
            assert self.process.poll() is None, self.words
            assert time.monotonic() < deadline, self.words
            await asyncio.sleep(0.005)

    async def says(self, words: str) -> None:
        await self.until(lambda: words in self.words)

    async def ended(self, within: float = SOON) -> int:
        """Wait for its end; return its exit code."""
        began = time.monotonic()
        while self.process.poll() is None and time.monotonic() < began + within:
            await asyncio.sleep(0.005)
        hung = self.process.poll() is None
        if hung:
            self.process.kill()
        for reader in self._readers:
            await asyncio.to_thread(reader.join)
        assert not hung, f"it hangs; it has said:\n{self.words}"
        assert "Traceback" not in self.words and "internal error" not in self.words, self.words
        return self.process.wait()

    async def interrupt(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return await self.ended()

    async def interrupt_twice(self) -> int:
        """Once, and again while the graceful end waits."""
        self.process.send_signal(signal.SIGINT)
        await self.says(STOPPING)
        began = time.monotonic()
        while self.process.poll() is None and time.monotonic() < began + SOON:
            self.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.05)
        return await self.ended()


def count(campaign: Any, interrupts: int = 1) -> None:
    campaign.count(interrupts=interrupts, hung=0, tracebacks=0, lost=0)


async def is_resumed(url: str, folder: Path, state: Any, cases: int, most: int) -> None:
    """Check that what was stored is there, and that `resume` completes it without buying more than `most` again."""
    store = Store(url, create=False)
    (run,) = store.runs()
    assert run.status in ("interrupted", "incomplete"), run
    state.release()
    done = Started("resume", run.id, "--store", url, "--quiet", folder=folder)
    assert await done.ended(HANGS) == 0, done.words
    assert store.run_of_id(run.id).status == "completed"
    assert state.calls.total() <= cases + most
    store.close()


@pytest.fixture
async def state(model_server) -> Any:
    """A model that answers 20 calls, and then none until it is released."""
    made = await model_server(answer="42")
    made.hold(after=20)
    return made


@pytest.fixture
def suite(write_suite) -> Path:
    path: Path = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(60), concurrency=4)
    return path


# -- the database ---------------------------------------------------------------------------------


@BOTH
async def test_a_database_that_has_gone(campaign, number, postgres, suite, state, tmp_path):
    """Nothing comes through any more, while calls are in flight whose answers then cannot be stored."""
    for _ in campaign.once():
        url = postgres.new_database()
        async with Partition(url) as partition:
            run = Started("run", suite, "--store", partition.url, folder=tmp_path)
            await run.until(lambda: state.calls.total() >= 24)
            partition.cut()
            state.release()  # what is answered now cannot be stored
            await run.says("waiting: the store has not replied")
            assert "no answer" not in run.words
            assert await run.interrupt(number) == 130
        assert re.search(r"error: interrupted, but .*`fairtrial resume \w+", run.words), run.words
        await is_resumed(url, tmp_path, state, 60, AT_ONCE)
        count(campaign)


async def test_a_reply_to_a_commit_that_does_not_come(campaign, postgres, suite, state, tmp_path):
    """Rows are written in a table that is locked: the server has the statement, and there is no error to wait for."""
    for _ in campaign.once():
        url = postgres.new_database()
        run = Started("run", suite, "--store", url, folder=tmp_path)
        await run.until(lambda: state.calls.total() >= 24)
        with postgres_lock(url):
            state.release()
            await run.says("waiting: the store has not replied")
            assert await run.interrupt_twice() == 130
        assert run.said[-1] == "interrupted"
        await is_resumed(url, tmp_path, state, 60, AT_ONCE)
        count(campaign, 2)


def postgres_lock(url: str) -> Any:
    """Another program's transaction, which keeps everybody from writing answers."""
    connection = psycopg.connect(url)
    connection.execute("LOCK TABLE trials IN SHARE MODE")
    return connection


async def test_a_store_that_another_program_has_locked(campaign, suite, state, tmp_path):
    for _ in campaign.once():
        path = tmp_path / "s.db"
        run = Started("run", suite, "--store", path, folder=tmp_path)
        await run.until(lambda: state.calls.total() >= 24)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
            other.execute("BEGIN IMMEDIATE")
            state.release()
            await run.says("waiting: another program has locked the store")
            assert await run.interrupt() == 130
        assert re.search(r"error: interrupted, but .* is locked .*`fairtrial resume \w+", run.words), run.words
        await is_resumed(str(path), tmp_path, state, 60, AT_ONCE)
        count(campaign)


TELLS = f"""\
import sys
from fairtrial.store import sqlite
again = sqlite._execute_again

def tell(*arguments):
    print("it waits", file=sys.stderr, flush=True)
    again(*arguments)

sqlite._execute_again = tell
{forks.PROGRAM}
"""
COMMANDS = {  # that write to a store of one run, which another program has locked
    "delete": ("delete", "latest", "--yes"),
    "tag": ("tag", "latest", "good"),
    "rescore": ("rescore", "latest", "--scorer", "boolean"),
    "run": ("run", "suite.yaml"),
    "copy": ("store", "copy", "other.db", "s.db"),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_whose_store_is_locked(campaign, name, write_suite, tmp_path):
    for chance in campaign.rounds(short=1):
        for file in ("s.db", "other.db"):
            store = Store(str(tmp_path / file))
            await pipeline.arun(pipeline.load(write_suite(cases=numbered(2))), store=store)
            store.close()
        write_suite(cases=numbered(3))
        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            more = () if name == "copy" else ("--store", "s.db")
            command = Started(*COMMANDS[name], *more, folder=tmp_path, program=TELLS)
            await command.says("it waits")
            assert await command.interrupt(chance.choice(SIGNALS)) == 130, command.words
        assert "interrupted" in command.words
        count(campaign)


# -- processes ------------------------------------------------------------------------------------


async def test_workers_whose_driver_was_killed(campaign, state, suite, tmp_path):
    """They end by themselves, with nothing to say."""
    for chance in campaign.rounds(short=2):
        moment = state.calls.total() + chance.randrange(1, 40)
        state.hold(after=moment)
        run = Started("run", suite, "--workers", 2, "--store", tmp_path / f"{chance.random()}.db", folder=tmp_path)
        await run.until(partial(lambda moment: state.calls.total() > moment, moment))
        run.process.kill()
        await run.ended(HANGS)  # the workers have its stderr, too
        assert run.words == "", run.words
        state.release()
        count(campaign)


SLOW_IMPORT = "import os\nos.write(2, b'it is imported\\n')\nos.read(int(os.environ['NEVER']), 1)\n"


@BOTH
@pytest.mark.parametrize("module", ["click", "yaml"])
async def test_a_program_that_is_being_imported(campaign, module, number, suite, tmp_path):
    """The first thing that it imports, and what a command imports later: nothing has been begun, so it just ends."""
    for _ in campaign.once():
        folder = tmp_path / "first"
        folder.mkdir(exist_ok=True)
        (folder / f"{module}.py").write_text(SLOW_IMPORT)
        never, held = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "fairtrial", "run", str(suite)], cwd=tmp_path, pass_fds=[never],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(folder), "NEVER": str(never)},
        )  # fmt: skip
        run = Started(folder=tmp_path, process=process)
        await run.says("it is imported")
        assert await run.interrupt(number) == 130
        assert run.said == ["it is imported", "interrupted"]
        os.close(never)
        os.close(held)
        count(campaign)


# -- models, judges, batches ----------------------------------------------------------------------


@BOTH
async def test_a_model_that_never_answers(campaign, number, state, suite, tmp_path):
    for _ in campaign.once():
        store = tmp_path / "s.db"
        run = Started("run", suite, "--store", store, folder=tmp_path)
        await run.until(lambda: state.calls.total() >= 24)
        assert await run.interrupt(number) == 130
        assert "fairtrial resume" in run.words
        await is_resumed(str(store), tmp_path, state, 60, 4)
        count(campaign)


JUDGING = {
    "calibrate": ("calibrate", "openai:judge"),
    "pairwise": ("pairwise", "latest", "--judge", "openai:judge"),
    "rescore": ("rescore", "latest", "--scorer", "llm_judge", "--judge", "openai:judge"),
}


@pytest.mark.parametrize("command", JUDGING)
async def test_a_judge_that_never_answers(campaign, command, state, write_suite, tmp_path):
    for chance in campaign.rounds(short=1):
        state.hold(after=0)
        path = write_suite(targets=["mock:echo", {"id": "b", "target": "mock:echo"}], cases=numbered(3))
        store = Store(str(tmp_path / "s.db"))
        await pipeline.arun(pipeline.load(path), store=store)
        calls = state.calls.total()
        judging = Started(*JUDGING[command], "--store", tmp_path / "s.db", folder=tmp_path)
        await judging.until(partial(lambda calls: state.calls.total() > calls, calls))
        assert await judging.interrupt(chance.choice(SIGNALS)) == 130
        assert "interrupted" in judging.words, judging.words
        store.close()
        count(campaign)


# -- pages, watches, and what reads ---------------------------------------------------------------


@BOTH
async def test_a_server_of_pages(campaign, number, postgres, tmp_path):
    """Also while a page waits for a database that has gone."""
    for _ in campaign.once():
        url = postgres.new_database()
        async with Partition(url) as partition:
            pages = Started("serve", "--no-open", "--port", 0, "--token", "a-token-of-tests-x", "--store",
                            partition.url, folder=tmp_path)  # fmt: skip
            await pages.says("is running at")
            address = re.search(r"http://127\.0\.0\.1:(\d+)", pages.words)
            assert address
            partition.cut()
            _, writer = await asyncio.open_connection("127.0.0.1", int(address[1]))
            writer.write(b"GET /?token=a-token-of-tests-x HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n" % address[1].encode())
            await writer.drain()
            assert await pages.interrupt(number) in (0, 130)
            writer.close()
        count(campaign)


@BOTH
async def test_what_reads_a_database_that_has_gone(campaign, number, postgres, suite, tmp_path):
    for _ in campaign.once():
        async with Partition(postgres.new_database()) as partition:
            partition.cut()
            for command in (("list",), ("show", "latest"), ("compare", "a", "b")):
                reader = Started(*command, "--store", partition.url, folder=tmp_path)
                await reader.until(lambda: partition.waiting)
                assert await reader.interrupt(number) == 130
                assert reader.words.strip() == "interrupted"
                partition.waiting = 0
                count(campaign)


@BOTH
async def test_a_suite_that_is_watched(campaign, number, state, suite, tmp_path):
    """Its runs are processes of their own, which are told."""
    for _ in campaign.once():
        store = tmp_path / "s.db"
        watch = Started("run", suite, "--watch", "--store", store, folder=tmp_path)
        await watch.until(lambda: state.calls.total() >= 24)
        assert await watch.interrupt(number) == 0
        await is_resumed(str(store), tmp_path, state, 60, 4)
        count(campaign)


# -- what the line says ---------------------------------------------------------------------------


async def test_the_line_names_who_is_waited_for(model_server, write_suite, store, monkeypatch):
    monkeypatch.setattr("fairtrial.engine.progress._STILL", 0.0)
    state = await model_server(answer="42")
    state.hold(after=0)

    async def line_of(**keys: Any) -> str:
        sessions: list[Any] = []

        @asynccontextmanager
        async def watch(session: Any) -> AsyncIterator[None]:
            sessions.append(session)
            yield

        before = state.calls.total()
        suite = pipeline.load(write_suite(**keys))
        work = asyncio.create_task(pipeline.arun(suite, store=store, watch=watch))
        while state.calls.total() == before:
            await asyncio.sleep(0.005)
        said = sessions[0].progress.held_back()
        sessions[0].interrupt()
        assert (await work).status == "interrupted"
        return re.sub(r"\d+ s", "N s", said[-1])

    assert await line_of(targets=["openai:m"]) == "no answer for N s from openai:m"
    judged = {"targets": ["mock:echo"], "scorer": "llm_judge", "judge": "openai:judge"}
    assert await line_of(**judged) == "no answer for N s from the judge openai:judge, which is tried first"
