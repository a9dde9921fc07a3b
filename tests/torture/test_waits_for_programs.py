"""Ctrl-C while a command waits for programs of others: solvers, browsers, agents, servers of tools.

The first one ends it gracefully within seconds, the second one at once, and nothing that was started is left.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import pytest

from tests.lazily import Library
from tests.processes import ended, new_mark
from tests.torture.test_waits import HANGS, SIGNALS, Started, count

psutil = Library("psutil")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
HOPELESS = """\
variables: [{name: x, size: 60, lower: -9, upper: 9}]
objective: sum(sin(3*x[i])*x[7*i + 3] for i in range(8)) + sum(cos(x[i]*x[i+1])*x[i] for i in range(59))
constraints: ['sum(x[i]**2 for i in range(60)) == 77']
"""
MORE_THAN_ONE = 0.3  # seconds between two signals that are not one
SOLVER = "fairtrial.tracks.optimisation.worker"
# It takes note of no signal but the last one, and what it starts leaves its group.
STUBBORN = """\
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if len(sys.argv) == 3:
    subprocess.Popen([sys.executable, __file__, sys.argv[1]], start_new_session=True)
    open(sys.argv[2], "w").close()
while True:
    time.sleep(3600)
"""


def below(command: Started, words: str) -> list[Any]:
    """The processes that a command has started, with these words on their command lines."""
    found = []
    for process in psutil.Process(command.process.pid).children(recursive=True):
        try:
            found += [process] if words in " ".join(process.cmdline()) else []
        except psutil.Error:  # it has just ended
            continue
    return found


async def interrupted(command: Started, number: int, times: int = 1) -> None:
    """Interrupt a command once, or once more while it is ending; nothing that it had started is left."""
    started = psutil.Process(command.process.pid).children(recursive=True)
    if times == 2:
        command.process.send_signal(number)
        await asyncio.sleep(MORE_THAN_ONE)
    assert await command.interrupt(number) == 130, command.words
    assert "interrupted" in command.words or "fairtrial resume" in command.words, command.words
    _, alive = psutil.wait_procs(started, HANGS)
    assert not alive, alive


# -- solvers ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
async def test_a_solver_that_never_ends(campaign, frozen, write_suite, tmp_path):
    """Before a run, whose suite has a problem that nobody solves."""
    (tmp_path / "p.yaml").write_text(HOPELESS)
    path = write_suite(suite={"kind": "optimisation", "problems": "p.yaml", "time_limit": 600})
    for chance in campaign.rounds(short=1):
        run = Started("run", path, "--store", tmp_path / "s.db", folder=tmp_path)
        await run.says("solving baselines: 0 of 1")
        await run.until(partial(below, run, SOLVER))
        for solver in below(run, SOLVER) if frozen else ():
            solver.suspend()
        await interrupted(run, chance.choice(SIGNALS), 1)
        count(campaign)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_program_in_an_answer_that_never_ends(campaign, times, write_suite, tmp_path):
    """It is run to be scored."""
    mark = new_mark()
    answer = (
        f"```python\ndef solve():\n    # {mark}\n    open({str(tmp_path / 'runs')!r}, 'w')\n    while True: pass\n```"
    )
    path = write_suite(
        suite={"kind": "optimisation", "ids": ["original-10"], "answer": "code", "sandbox": "none", "seconds": 600},
        targets=[{"target": "mock:x", "options": {"answer": answer}}],
        timeout=900,
    )
    for chance in campaign.rounds(short=1):
        run = Started("run", path, "--store", tmp_path / "s.db", folder=tmp_path)
        await run.until((tmp_path / "runs").exists)
        await interrupted(run, chance.choice(SIGNALS), times)
        (tmp_path / "runs").unlink()
        count(campaign, times)


# -- browsers -----------------------------------------------------------------------------------------

ENDLESS = "<!doctype html><html lang=en><title>T</title><h1>T</h1><script>for (;;) {}</script></html>"


@pytest.mark.slow
@pytest.mark.parametrize(("frozen", "times"), [("", 1), ("", 2), ("headless", 1), ("playwright/driver", 1)])
@pytest.mark.usefixtures("chromium")
async def test_a_page_whose_script_never_ends(campaign, frozen, times, write_suite, tmp_path):
    path = write_suite(targets=[{"target": "mock:x", "options": {"answer": ENDLESS}}], scorer="browser")
    for chance in campaign.rounds(short=1):
        run = Started("run", path, "--store", tmp_path / "s.db", folder=tmp_path)
        await run.until(partial(below, run, "--type=renderer"))
        for process in below(run, frozen) if frozen else ():
            process.suspend()
        await interrupted(run, chance.choice(SIGNALS), times)
        count(campaign, times)


# -- agents, and the servers that they use ------------------------------------------------------------


@pytest.mark.parametrize(("frozen", "times"), [(False, 1), (False, 2), (True, 1)])
async def test_an_agent_that_ignores_signals(campaign, frozen, times, write_suite, tmp_path):
    """Frozen is all that has to do with it: also what should end it."""
    (tmp_path / "agent.py").write_text(STUBBORN)
    mark, runs = new_mark(), tmp_path / "runs"
    command = [sys.executable, "agent.py", mark, str(runs)]
    path = write_suite(targets=[{"target": "command", "options": {"command": command}}])
    for chance in campaign.rounds(short=1):
        run = Started("run", path, "--store", tmp_path / "s.db", folder=tmp_path)
        await run.until(runs.exists)
        for process in below(run, mark) if frozen else ():
            process.suspend()
        await interrupted(run, chance.choice(SIGNALS), times)
        assert ended(mark)
        runs.unlink()
        count(campaign, times)
