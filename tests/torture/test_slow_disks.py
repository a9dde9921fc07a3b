"""Ctrl-C while a disk takes its time: SQLite then waits in C, where Python calls no handler of signals."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

import pytest

from fairtrial import pipeline
from fairtrial.store import Store
from tests import forks
from tests.conftest import numbered
from tests.torture.test_waits import AT_ONCE, BOTH, Started, count, is_resumed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lock that nobody gives back is one of Linux")
# Once a file is there, no commit comes back: the thread waits for a lock of its own, which no signal ends.
STUCK = f"""\
import ctypes, os, sys
from fairtrial.cli import interrupts
from sqlalchemy.engine.default import DefaultDialect
interrupts._DEAF = 1.0
commit, library = DefaultDialect.do_commit, ctypes.CDLL(None)

def stuck(*arguments):
    if os.path.exists("stuck"):
        print("it is stuck", file=sys.stderr, flush=True)
        lock = ctypes.create_string_buffer(256)
        while True:
            library.pthread_mutex_lock(lock)
    commit(*arguments)

DefaultDialect.do_commit = stuck
{forks.PROGRAM}
"""


@BOTH
@pytest.mark.parametrize("times", [1, 2])
async def test_a_run_whose_commit_does_not_come_back(campaign, number, times, model_server, write_suite, tmp_path):
    """The loop goes on: it says what it waits for, and ends."""
    state = await model_server(answer="42")
    path = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(60), concurrency=4)
    for chance in campaign.rounds(short=1):
        store, before = tmp_path / f"{chance.random()}.db", state.calls.total()
        state.hold(after=before + 20)
        run = Started("run", path, "--store", store, folder=tmp_path, program=STUCK)
        await run.until(partial(lambda before: state.calls.total() >= before + 24, before))
        (tmp_path / "stuck").touch()
        state.release()
        await run.says("waiting: the store has not replied")
        assert await (run.interrupt(number) if times == 1 else run.interrupt_twice()) == 130
        (tmp_path / "stuck").unlink()
        await is_resumed(str(store), tmp_path, state, before + 60, AT_ONCE)
        count(campaign, times)


@BOTH
@pytest.mark.parametrize("times", [1, 2])
async def test_a_command_that_hears_no_signal(campaign, number, times, write_suite, tmp_path):
    """Nothing can be ended gracefully any more; what it would have written is not there."""
    for _ in campaign.rounds(short=1):
        store = Store(str(tmp_path / "s.db"))
        await pipeline.arun(pipeline.load(write_suite(cases=numbered(2))), store=store)
        store.close()
        (tmp_path / "stuck").touch()
        command = Started("tag", "latest", "good", "--store", "s.db", folder=tmp_path, program=STUCK)
        await command.says("it is stuck")
        command.process.send_signal(number)
        if times == 2:
            await asyncio.sleep(0.3)
            command.process.send_signal(number)
        assert await command.ended() == 130
        # It may be hit between the two: then the command ends as any other one does.
        assert [line for line in command.said if line] == ["it is stuck", "interrupted"]
        assert not Store(str(tmp_path / "s.db"), create=False).tags()
        count(campaign, times)
