"""kill -9 at random moments, then resume, many times over: nothing stored is lost, asked again or doubled."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests import forks
from tests.conftest import numbered
from tests.lazily import Library

psutil = Library("psutil")
CASES = 400


def stored(folder: Path) -> dict[str, str]:
    """Every stored prompt with its answer."""
    try:
        with closing(sqlite3.connect(f"file:{folder}/.fairtrial/fairtrial.db?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "select cases.input, trials.answer from trials join cases on cases.position = trials.case_position"
            )
            return dict(rows.fetchall())
    except sqlite3.OperationalError:
        return {}


def count_stored(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder}/.fairtrial/fairtrial.db?mode=ro", uri=True)) as connection:
            return int(connection.execute("select count(*) from trials where answer is not null").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.slow
async def test_kill_and_resume(tmp_path, write_suite, model_server):
    luck = random.Random(7)
    # The server is in this process, so that a run gets no further than it is watched, and outlives those that are killed.
    server = await model_server(latency=0.02, answer="42: {prompt}")
    write_suite(targets=["openai:m"], scorer="boolean", concurrency=8, cases=numbered(CASES))
    kills = 0
    for _ in range(40):
        before = stored(tmp_path)
        asked_before = server.answered.copy()
        go_on = ["resume", "latest"] if before else ["run", "suite.yaml"]
        process = forks.start(*go_on, "--quiet")
        # Killed after a random number of further answers, so that it hits start, middle and commits alike.
        goal = len(before) + luck.randint(0, 90)
        while process.poll() is None and count_stored(tmp_path) < goal:
            await asyncio.sleep(0.02)
        await asyncio.sleep(luck.random() * 0.05)
        if process.poll() is None:
            process.kill()
            kills += 1
        await asyncio.to_thread(process.communicate)
        after = stored(tmp_path)
        assert before.items() <= after.items(), "a stored answer was lost or changed"
        again = [prompt for prompt in before if server.answered[prompt] != asked_before[prompt]]
        assert not again, "a stored answer was asked for again"
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert kills >= 5
    final = stored(tmp_path)
    assert len(final) == CASES
    assert all(answer == f"42: {prompt}" for prompt, answer in final.items())
    with closing(sqlite3.connect(tmp_path / ".fairtrial" / "fairtrial.db")) as connection:
        assert connection.execute("select count(*), count(value) from scores").fetchone() == (CASES, CASES)
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
@pytest.mark.parametrize("calls", [0, 2])
async def test_workers_of_a_killed_driver_end_without_a_word(calls, write_suite, model_server):
    """Killed while they open their targets, and while they wait for answers."""
    server = await model_server()
    server.hold(after=0)
    write_suite(targets=["openai:m"], scorer="boolean", concurrency=4, cases=numbered(20))
    driver = forks.start("run", "suite.yaml", "--workers", "2", "--quiet")
    while server.calls.total() < calls or not helpers(driver):
        await asyncio.sleep(0.01)
    left = helpers(driver)
    driver.kill()
    out, err = await asyncio.to_thread(driver.communicate)  # to the end of whoever can write there
    assert (out, err) == (b"", b"")
    psutil.wait_procs(left, 60)
    assert not any(process.is_running() for process in left)


def helpers(process):
    return psutil.Process(process.pid).children(recursive=True)
