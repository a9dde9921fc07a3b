"""Programs that are killed or frozen while a trial needs them: browsers, what drives them, agents, servers of tools.

The trial is asked or looked at again, or fails with one sentence; the others go on, and nothing of it is left.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from fairtrial.core.time_limit import time_limit
from fairtrial.engine import ladder
from fairtrial.targets import tool_agent
from fairtrial.webpage import browser_process, driver, visit
from fairtrial.webpage.browser_process import BrowserProcess
from tests.conftest import numbered
from tests.lazily import Library
from tests.processes import ended, new_mark
from tests.targets.test_agents import hanging

psutil = Library("psutil")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
HARMS = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}
HARMED = pytest.mark.parametrize("harm", HARMS)


def below(words: str) -> list[Any]:
    """The processes that this one has started, with these words on their command lines."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            found += [process] if words in " ".join(process.cmdline()) else []
        except psutil.Error:  # it has just ended
            continue
    return found


def hit(harm: str, words: str, but: str | None = None, *, others: Sequence[Any] = ()) -> list[Any]:
    """Harm the processes with these words on their command lines, but not those with some others; return them.

    `others` are there for other tests.
    """
    spared = [*others, *(below(but) if but else ())]
    processes = [process for process in below(words) if process not in spared]
    assert processes
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # it went with the one before
            process.send_signal(HARMS[harm])
    return processes


def is_frozen(process: Any) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


# -- browsers -----------------------------------------------------------------------------------------

PAGE = "<!doctype html><html lang=en><title>T</title><h1>T</h1><p id=n>1</p></html>"
CHECK = {"name": "it is there", "steps": [{"expect": {"selector": "#n", "text": "1"}}]}


_ASKED_AGAIN = 60.0  # seconds: a shorter limit is for one reply, a longer one for a whole try


@pytest.fixture
def frozen(monkeypatch) -> list[Any]:
    """Processes that are not waited for as long as they are frozen, but for a try that began after that, with others."""
    processes: list[Any] = []

    class Impatient(time_limit):
        def __init__(self, seconds: float) -> None:
            super().__init__(seconds)
            self._before = [*processes] if seconds > _ASKED_AGAIN else []

        def _end_step(self) -> None:
            waits = any(is_frozen(process) for process in processes if process not in self._before)
            self._left = 0.0 if waits else self._left
            super()._end_step()

    for module in (browser_process, driver, visit, tool_agent):
        monkeypatch.setattr(module, "time_limit", Impatient)
    return processes


@pytest.mark.slow
@HARMED
@pytest.mark.parametrize("words", ["headless", "playwright/driver"])
@pytest.mark.usefixtures("chromium")
async def test_a_browser_in_the_middle_of_a_check(campaign, harm, words, run_suite, frozen, monkeypatch):
    """As soon as it has a page, and before that is looked at."""
    open_page, pages = BrowserProcess.page, 0
    others = [*below("headless"), *below("playwright/driver")]

    async def page(self: BrowserProcess, *arguments: Any) -> Any:
        nonlocal pages
        pages += 1
        opened = await open_page(self, *arguments)
        if pages == 1:  # the one that starts for the other case meanwhile is not waited for in vain
            others_too = [one for one in below("headless") if self._process not in (one, *one.parents())]
            frozen[:] = hit(harm, words, others=[*others, *others_too])
        return opened

    monkeypatch.setattr(BrowserProcess, "page", page)
    for _ in campaign.rounds(short=1):
        pages = 0
        cases = [{"id": "a", "input": "A page", "checks": [CHECK]}, {"id": "b", "input": "Another page"}]
        target = {"target": "mock:x", "options": {"answer": PAGE}}
        run = await run_suite(targets=[target], scorer="browser", cases=cases, concurrency=1)
        scores = {trial.case_id: trial.score for trial in run.trials()}
        why = [trial.unscored_message for trial in run.trials()]
        assert run.status == "completed" and scores["a"] == 1.0 and scores["b"], (scores, why)
        left = [process for process in (*below("headless"), *below("playwright/driver")) if process not in others]
        assert pages >= 2 and not left
        campaign.count(**{harm: 1}, hung=0, lost=0)


STARTER = """\
#!/bin/sh
case "$*" in *--headless*) if mkdir {mark} 2> /dev/null; then kill -STOP $$; fi ;; esac
exec {chromium} "$@"
"""


async def test_a_browser_that_is_frozen_while_it_starts(run_suite, chromium, frozen, tmp_path, monkeypatch):
    """Nobody knows its process yet. It is ended all the same, and another one is started."""
    program = tmp_path / "chromium-headless-shell"
    program.write_text(STARTER.format(mark=tmp_path / "frozen", chromium=chromium))
    program.chmod(0o700)
    monkeypatch.setenv("FAIRTRIAL_BROWSER", str(program))
    left = []

    async def find() -> None:
        while not (stopped := [process for process in below(str(program)) if is_frozen(process)]):
            await asyncio.sleep(0.05)
        left.extend(stopped)
        frozen[:] = stopped

    cases = [{"id": "a", "input": "A page", "checks": [CHECK]}]
    work = run_suite(targets=[{"target": "mock:x", "options": {"answer": PAGE}}], scorer="browser", cases=cases)
    run, _ = await asyncio.gather(work, find())
    (trial,) = run.trials()
    assert (trial.score, trial.unscored_message) == (1.0, None)
    assert left and not any(process.is_running() for process in left)


# -- agents, and the servers that they use ------------------------------------------------------------

# The first of its tasks keeps it for ever, with a program in a session of its own that has its pipes.
AGENT = """\
import os, subprocess, sys, time
if "Question 0" in sys.stdin.read():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", sys.argv[1]], start_new_session=True)
    open(sys.argv[2], "w").close()
    time.sleep(3600)
print("42")
"""


@pytest.mark.parametrize(
    ("harm", "kind", "said"),
    [("killed", "crashed", "the command was killed (SIGKILL)"), ("frozen", "timeout", "no answer within 120 s")],
)
async def test_an_agent_in_the_middle_of_its_task(campaign, harm, kind, said, run_suite, frozen, tmp_path, monkeypatch):
    """Killed is the agent alone; frozen is all that has to do with it, also what should end it."""
    monkeypatch.setattr(ladder, "time_limit", visit.time_limit)  # the one that does not wait for what is frozen
    (tmp_path / "agent.py").write_text(AGENT)
    runs = tmp_path / "runs"

    async def hit_it() -> None:
        while not runs.exists():
            await asyncio.sleep(0.01)
        frozen[:] = hit(harm, mark, but="supervisor.py" if harm == "killed" else None)

    for _ in campaign.rounds(short=1):
        mark = new_mark()
        target = {"target": "command", "options": {"command": [sys.executable, "agent.py", mark, str(runs)]}}
        work = run_suite(
            targets=[target], cases=numbered(3), timeout=120, on_limit="fail", retry={"attempts": 1}, concurrency=1
        )
        run, _ = await asyncio.gather(work, hit_it())
        failed = [(trial.failure_kind, trial.failure_message) for trial in run.trials() if trial.answer is None]
        assert failed == [(kind, said)] and sum(trial.score == 1 for trial in run.trials()) == 2
        assert ended(mark)
        runs.unlink()
        campaign.count(**{harm: 1}, hung=0, left=0)


@pytest.mark.slow
@HARMED
async def test_a_server_of_tools_in_the_middle_of_a_call(campaign, harm, run_suite, model, frozen, tmp_path):
    """Its model is told, and goes on."""
    await model()
    hangs = tmp_path / "hangs"

    async def hit_it() -> None:
        while not hangs.exists():
            await asyncio.sleep(0.01)
        frozen[:] = hit(harm, mark)

    for _ in campaign.rounds(short=1):
        mark = new_mark()
        work = run_suite(
            targets=["tool-agent:openai:m"],
            mcp_servers={"facts": hanging(mark, hangs)},
            conditions={"with-facts": {"mcp": ["facts"]}},
            cases=numbered(1),
        )
        run, _ = await asyncio.gather(work, hit_it())
        (trial,) = run.trials()
        said = "the tool failed: MCPError: Connection closed" if harm == "killed" else "no answer within 60 s"
        assert trial.answer == f"It is {said}" and ended(mark)
        hangs.unlink()
        campaign.count(**{harm: 1}, hung=0, left=0)
