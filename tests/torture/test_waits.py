"""Ctrl-C wherever a command waits: it ends gracefully within seconds, and a second one ends it at once.

A command provably waits when the signal is sent: a server has its request, its line names what it waits for, or what it
would write to is locked. Nothing of what had arrived is lost, and what it says is for people.
"""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.store import Store
from tests import forks
from tests.conftest import numbered
from tests.torture.partition import Partition

SOON = 60.0  # seconds, on a machine with much else to do; on an idle one it takes two to seven
HANGS = 240.0  # seconds after which what should happen is taken for what never will
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
AT_ONCE = 2 * 4 + 16  # trials that are asked, stored and scored at the same time
STOPPING = "stopping, and storing what has arrived; Ctrl-C again ends at once"


class Started:
    """A command whose lines are read as it writes them."""

    def __init__(self, *arguments: Any, folder: Path, process: Any = None) -> None:
        self.process = process or forks.start(*arguments, folder=folder)
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
    for _ in campaign.rounds(short=1):
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
